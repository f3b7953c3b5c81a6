"""The codecs of frames: requests of clients and messages to them, in the form of each kind of socket."""
