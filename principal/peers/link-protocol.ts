/**
 * What replicas say to each other: requests of HTTP/1.1, each about one agent, over TLS 1.3. A request is served by the replica that gets
 * it, or not at all.
 */

/** Names the agent that a request is about. */
export const agentHeader = 'argocd-agent-name';
/** In an answer: the replica does not hold the agent, and has done nothing. */
export const notHeldHeader = 'argocd-agent-not-held';
/** In an answer: why the request failed, as metrics name it. */
export const failureHeader = 'argocd-agent-failure';

/** The beginning of paths about an agent's Kubernetes API; what follows is the path of that API. */
export const resourcesPath = '/resources';
/** Asks an agent's Redis. */
export const redisPath = '/redis';
/** Follows the messages on channels, and the arrivals of agents, that the asking replica has asked for. */
export const newsPath = '/news';
/** The beginning of the path by which a replica is told that the asking one has deposed it; what follows is its identity. */
export const deposedPath = '/deposed';
/** The beginning of paths of live streams that an agent has opened at the asking replica. */
export const streamsPath = '/streams';
/** What a connection for a live stream is upgraded to. */
export const streamProtocol = 'argocd-agent-live-stream';

/** Requests about one agent that a replica may have open at its peers at the same time. */
export const mostPerAgent = 1_000;
/** Requests that a replica may have open at one peer at the same time; each has a connection. */
export const mostPerPeer = 4_000;
