export { applications, appProjects, syncSelector } from './argo-kinds.ts';
export type { IntakeLimits } from './intake.ts';
export { kubeClient, startInformer } from './kube-access.ts';
export { eventOf, messageOf } from './messages.ts';
export { type Peer, type PeerListener, peerOnStream } from './peer.ts';
export { persistently } from './persist.ts';
export { kubeStore } from './store.ts';
