/** Room for one stream and for a connection before the peer must wait: enough for bursts over long distances. */
export const streamWindowBytes = 1024 * 1024;
/** See `streamWindowBytes`. */
export const connectionWindowBytes = 8 * 1024 * 1024;
/** In MB. Node counts the queued and received data of a session and refuses new streams above it. */
export const sessionMemoryMegabytes = 1024;
