// Made of the contract by make_types.py: change that, and not this file.

/** `statecast.bookings.v1.Booking` */
export interface BookingsV1Booking {
  booking_id: string;
  customer_id: string;
  booked_at?: string;
  origin: string;
  destination: string;
  departs_at?: string;
}

/** `statecast.odds.v1.Outcome` */
export interface OddsV1Outcome {
  name: string;
  odds_thousandths: number;
}

/** `statecast.odds.v1.Market` */
export interface OddsV1Market {
  market_id: string;
  match_id: string;
  name: string;
  outcomes: OddsV1Outcome[];
  suspended: boolean;
  updated_at?: string;
}

/** `statecast.odds.v1.MatchStatus` */
export type OddsV1MatchStatus = "MATCH_STATUS_UNSPECIFIED" | "MATCH_STATUS_SCHEDULED" | "MATCH_STATUS_ABOUT_TO_START" | "MATCH_STATUS_IN_PLAY" | "MATCH_STATUS_ENDED" | "MATCH_STATUS_CANCELLED";

/** `statecast.odds.v1.Match` */
export interface OddsV1Match {
  match_id: string;
  sport: string;
  home: string;
  away: string;
  status: OddsV1MatchStatus;
  starts_at?: string;
}

/** `statecast.orders.v1.OrderStatus` */
export type OrdersV1OrderStatus = "ORDER_STATUS_UNSPECIFIED" | "ORDER_STATUS_PLACED" | "ORDER_STATUS_PAID" | "ORDER_STATUS_PACKED" | "ORDER_STATUS_SHIPPED" | "ORDER_STATUS_DELIVERED" | "ORDER_STATUS_CANCELLED";

/** `statecast.orders.v1.OrderItem` */
export interface OrdersV1OrderItem {
  item_id: string;
  quantity: number;
  unit_price_cents: string;
}

/** `statecast.orders.v1.Order` */
export interface OrdersV1Order {
  order_id: string;
  customer_id: string;
  status: OrdersV1OrderStatus;
  items: OrdersV1OrderItem[];
  total_cents: string;
  currency: string;
  placed_at?: string;
  updated_at?: string;
  estimated_delivery: string;
  tracking_number: string;
}

/** `statecast.portfolio.v1.OpenPosition` */
export interface PortfolioV1OpenPosition {
  position_id: string;
  client: string;
  ticker: string;
  amount: string;
  exchange: string;
}

/** `statecast.portfolio.v1.ShareHolder` */
export interface PortfolioV1ShareHolder {
  client: string;
  positions: string;
  shares: string;
  position_ids: string[];
  position_ids_truncated: boolean;
}

/** `statecast.push.v2.Consumer` */
export interface Consumer {
  id?: string;
  name?: string;
  staff?: boolean;
}

/** `statecast.push.v2.ReadableStores` */
export interface ReadableStores {
  stores?: ReadableStore[];
}

/** `statecast.push.v2.ReadableStore` */
export interface ReadableStore {
  store?: string;
  message?: string;
  description?: string;
  keeps?: string;
  readers?: string;
  owner_field?: string;
  group_is_owner?: boolean;
}

/** `statecast.push.v2.EdgeReport` */
export interface EdgeReport {
  instance?: string;
  uptime_s?: number;
  not_ready?: string;
  sockets?: number;
  subscriptions?: number;
  unique_keys?: number;
  totals?: Totals;
  ages?: Ages;
}

/** `statecast.push.v2.Totals` */
export interface Totals {
  frames_sent?: number;
  skipped?: number;
  polled_keys?: number;
  changed_keys?: number;
  failed_keys?: number;
  sockets_opened?: number;
  stalled_sockets?: number;
}

/** `statecast.push.v2.Ages` */
export interface Ages {
  bounds_s?: number[];
  counts?: number[];
}

/** `statecast.push.v2.RevocationRequest` */
export interface RevocationRequest {
  consumer?: string;
  username?: boolean;
}

/** `statecast.push.v2.RevocationReply` */
export interface RevocationReply {
  consumer?: string;
  revoked_at?: string;
}

/** `statecast.push.v2.ChannelHead` */
export interface ChannelHead {
  owner?: string;
  expires_at?: string;
}

/** `statecast.push.v2.ChannelRecord` */
export interface ChannelRecord {
  channel?: ChannelHead;
  watch?: NamedWatch;
}

/** `statecast.push.v2.OrderReference` */
export interface OrderReference {
  order_id?: string;
}

/** `statecast.push.v2.OrderUpdatesRequest` */
export interface OrderUpdatesRequest {
  type?: string;
  data?: OrderReference;
  order_id?: string;
  interval_ms?: number;
  ticket?: string;
  repeat?: boolean;
  token?: string;
}

/** `statecast.push.v2.OrderStatusView` */
export interface OrderStatusView {
  order_id?: string;
  status?: string;
  estimated_delivery?: string;
  tracking_number?: string;
}

/** `statecast.push.v2.OrderUpdatesError` */
export interface OrderUpdatesError {
  code?: string;
  message?: string;
  order_id?: string;
}

/** `statecast.push.v2.OrderUpdatesReply` */
export interface OrderUpdatesReply {
  type?: string;
  data?: OrderStatusView;
  commit_time?: string;
  skipped?: string;
  error?: OrderUpdatesError;
  delay_ms?: number;
  token?: string;
  expires_in_s?: number;
}

/** `statecast.push.v2.ClientFrame` */
export interface ClientFrame {
  unwatch?: number[];
  watch?: Watch[];
  renew?: Renew;
  ping?: Ping;
}

/** `statecast.push.v2.Watch` */
export interface Watch {
  id?: number;
  store?: string;
  group?: string;
  sort_from?: string;
  sort_to?: string;
  limit?: number;
  reverse?: boolean;
  steps?: Step[];
  fields?: string[];
  delta?: boolean;
  times?: boolean;
  interval_ms?: number;
  token?: string;
  below?: PlaceToken[];
  channel?: string;
}

/** `statecast.push.v2.Step` */
export interface Step {
  store?: string;
  group_field?: string;
  sort_from?: string;
  sort_to?: string;
  limit?: number;
  reverse?: boolean;
  fields?: string[];
}

/** `statecast.push.v2.PlaceToken` */
export interface PlaceToken {
  path?: string[];
  token?: string;
}

/** `statecast.push.v2.Renew` */
export interface Renew {
  ticket?: string;
}

/** `statecast.push.v2.ServerFrame` */
export interface ServerFrame {
  id?: number;
  path?: string[];
  watching?: Watching;
  rows?: Row[];
  token?: string;
  current?: boolean;
  ended?: Ended;
  hello?: Hello;
  ping?: Ping;
  access?: Access;
  reconnect?: Reconnect;
  error?: Problem;
  warning?: Problem;
}

/** `statecast.push.v2.Watching` */
export interface Watching {
  resumed?: boolean;
  message?: string;
  key_field?: string;
  sort_field?: string;
  limit?: number;
  interval_ms?: number;
}

/** `statecast.push.v2.Row` */
export interface Row {
  key?: string;
  sort?: string;
  row?: unknown;
  delta?: Record<string, unknown>;
  encoded?: string;
  changed?: string[];
  left?: boolean;
  skipped?: number;
  commit_time?: string;
  error?: Problem;
  group?: string;
}

/** `statecast.push.v2.Ended` */
export interface Ended {
  code?: string;
  message?: string;
  retry_ms?: number;
}

/** `statecast.push.v2.Hello` */
export interface Hello {
  protocol?: number;
  expires_in_s?: number;
  ping_s?: number;
  max_frame_bytes?: number;
  max_request_bytes?: number;
  max_watches?: number;
}

/** `statecast.push.v2.Ping` */
export interface Ping {
  bookmarks?: Bookmark[];
  blind?: Blind[];
}

/** `statecast.push.v2.Bookmark` */
export interface Bookmark {
  id?: number;
  path?: string[];
  token?: string;
}

/** `statecast.push.v2.Blind` */
export interface Blind {
  ids?: number[];
  lag_s?: number;
}

/** `statecast.push.v2.Access` */
export interface Access {
  expires_in_s?: number;
}

/** `statecast.push.v2.Reconnect` */
export interface Reconnect {
  delay_ms?: number;
}

/** `statecast.push.v2.Problem` */
export interface Problem {
  code?: string;
  message?: string;
  retry_ms?: number;
}

/** `statecast.push.v2.Page` */
export interface Page {
  rows?: Row[];
  token?: string;
  next_page_token?: string;
  lag_s?: number;
}

/** `statecast.push.v2.Channel` */
export interface Channel {
  channel?: string;
  expires_in_s?: number;
  watches?: NamedWatch[];
}

/** `statecast.push.v2.NamedWatch` */
export interface NamedWatch {
  name?: string;
  watch?: Watch;
}

/** `statecast.push.v2.Ticket` */
export interface Ticket {
  ticket?: string;
  expires_in_s?: number;
}

/** `statecast.push.v2.ErrorBody` */
export interface ErrorBody {
  error?: Problem;
}

/** `statecast.push.v2.Revocation` */
export interface Revocation {
  revoked_at?: string;
}

/** `statecast.sales.v1.CitySales` */
export interface SalesV1CitySales {
  city: string;
  invoices: string;
  amount_cents: string;
}

/** `statecast.sales.v1.CustomerRewards` */
export interface SalesV1CustomerRewards {
  customer_card_no: string;
  invoices: string;
  spent_cents: string;
  points: string;
}

/** `statecast.sales.v1.HomeDelivery` */
export interface SalesV1HomeDelivery {
  invoice_number: string;
  store_id: string;
  address?: SalesV1DeliveryAddress;
  created_at?: string;
}

/** `statecast.sales.v1.HourlySales` */
export interface SalesV1HourlySales {
  store_id: string;
  window_start?: string;
  window_end?: string;
  invoices: string;
  amount_cents: string;
  average_cents: number;
}

/** `statecast.sales.v1.CustomerType` */
export type SalesV1CustomerType = "CUSTOMER_TYPE_UNSPECIFIED" | "CUSTOMER_TYPE_PRIME" | "CUSTOMER_TYPE_NON_PRIME";

/** `statecast.sales.v1.DeliveryType` */
export type SalesV1DeliveryType = "DELIVERY_TYPE_UNSPECIFIED" | "DELIVERY_TYPE_HOME_DELIVERY" | "DELIVERY_TYPE_TAKE_AWAY";

/** `statecast.sales.v1.DeliveryAddress` */
export interface SalesV1DeliveryAddress {
  address_line: string;
  city: string;
  postal_code: string;
  contact_number: string;
}

/** `statecast.sales.v1.InvoiceLine` */
export interface SalesV1InvoiceLine {
  item_code: string;
  item_description: string;
  item_quantity: number;
  item_price_cents: string;
}

/** `statecast.sales.v1.Invoice` */
export interface SalesV1Invoice {
  invoice_number: string;
  store_id: string;
  customer_card_no: string;
  customer_type: SalesV1CustomerType;
  delivery_type: SalesV1DeliveryType;
  delivery_address?: SalesV1DeliveryAddress;
  lines: SalesV1InvoiceLine[];
  total_amount_cents: string;
  currency: string;
  created_at?: string;
}

/** `statecast.sales.v1.InvoiceWithStore` */
export interface SalesV1InvoiceWithStore {
  invoice?: SalesV1Invoice;
  store?: SalesV1Store;
}

/** `statecast.sales.v1.LoyaltyNotification` */
export interface SalesV1LoyaltyNotification {
  invoice_number: string;
  customer_card_no: string;
  total_amount_cents: string;
  earned_points: string;
  total_points: string;
}

/** `statecast.sales.v1.MaskedLine` */
export interface SalesV1MaskedLine {
  invoice_number: string;
  store_id: string;
  created_at?: string;
  customer_type: SalesV1CustomerType;
  delivery_type: SalesV1DeliveryType;
  city: string;
  item_code: string;
  item_quantity: number;
  item_price_cents: string;
  customer_card_masked: string;
}

/** `statecast.sales.v1.Store` */
export interface SalesV1Store {
  store_id: string;
  name: string;
  city: string;
}

/** `statecast.sales.v1.StoreSales` */
export interface SalesV1StoreSales {
  store_id: string;
  invoices: string;
  amount_cents: string;
}

/** `statecast.sales.v1.StoreWithSales` */
export interface SalesV1StoreWithSales {
  store?: SalesV1Store;
  sales?: SalesV1StoreSales;
}
