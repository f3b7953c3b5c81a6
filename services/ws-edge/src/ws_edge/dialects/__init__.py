"""The dialects of frames: what clients ask and are told, in the words of each kind of socket."""
