"""The codecs of frames: what clients ask for and what they are sent, as each kind of socket writes it."""
