"""A table of sales with prices that are decimals: messages as a team mounts them, and the sums of its turnover."""

from pathlib import Path

CHANGE, ROW, TURNOVER = "shop.v1.SaleChange", "shop.v1.Sale", "shop.v1.Turnover"
PROTO = """
syntax = "proto3";
package shop.v1;
import "statecast/change/v1/change.proto";
import "statecast/change/v1/decimal.proto";
message Sale {
  int32 sale_id = 1;
  string shop = 2;
  optional string price = 3 [(statecast.change.v1.decimal) = {precision: 12, scale: 2}];
  int64 amount = 4;
  repeated string discounts = 5 [(statecast.change.v1.decimal) = {precision: 2, scale: 2}];
  double weight = 6;
  string tax = 7 [(statecast.change.v1.decimal) = {precision: 8, scale: 7}];
}
message SaleChange {
  statecast.change.v1.Operation operation = 1;
  statecast.change.v1.Source source = 2;
  Sale before = 3;
  Sale after = 4;
}
message Turnover {
  string shop = 1;
  int64 sales = 2;
  string total = 3 [(statecast.change.v1.decimal) = {precision: 38, scale: 2}];
  string price = 4 [(statecast.change.v1.decimal) = {precision: 12, scale: 2}];
  double average = 5;
  string tax = 6 [(statecast.change.v1.decimal) = {precision: 8, scale: 2}];
  string discounts = 7 [(statecast.change.v1.decimal) = {precision: 2, scale: 2}];
  optional int64 pieces = 8;
  uint32 boxes = 9;
}
"""


def mount(directory: Path) -> Path:
    """Writes the messages into the directory, and returns it."""
    (directory / "sales.proto").write_text(PROTO)
    return directory
