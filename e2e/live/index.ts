/** Live access to a cluster, as its clients use it. */
export { Kubectl, type Said } from './kubectl.ts';
export { type Answer, ProxyClient } from './proxy-client.ts';
export { deployWeb, type ProxiedPair, shopPod, startProxiedPair } from './shop.ts';
export { type Outcome, TerminalClient } from './terminal-client.ts';
