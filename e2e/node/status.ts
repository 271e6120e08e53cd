import { rfc3339 } from '../../lib/kube/index.ts';
import { clusterAddress } from './addresses.ts';
import type {
  ContainerState,
  ContainerStatus,
  KubeletContainer,
  KubeletPod,
  PodCondition,
  PodStatus,
} from './types.ts';

/** What the node knows of one container. */
export interface ContainerFacts {
  container: KubeletContainer;
  state: ContainerState;
  lastState: ContainerState;
  restartCount: number;
  /** Running, and its readiness probe passes. */
  ready: boolean;
  /** Running, and its startup probe has passed. */
  started: boolean;
  containerId: string | undefined;
}

/** What the node knows of a pod. */
export interface PodFacts {
  pod: KubeletPod;
  address: string;
  nodeAddress: string;
  startTime: string;
  init: ContainerFacts[];
  main: ContainerFacts[];
  /** Set once the pod is being ended. */
  terminating: boolean;
}

/** The status that a kubelet would write. Only conditions of this node are changed; those of others are kept. */
export function podStatus(facts: PodFacts, now: Date): PodStatus {
  const { pod, init, main } = facts;
  const phase = phaseOf(facts);
  const done = phase === 'Succeeded' || phase === 'Failed';
  const initialized = done ? phase === 'Succeeded' || isInitialized(init) : isInitialized(init);
  const unready = main.filter((c) => !c.ready).map((c) => c.container.name);
  const readiness = (type: string): PodCondition => {
    if (phase === 'Succeeded') {
      return { type, status: 'False', reason: 'PodCompleted' };
    }
    if (phase === 'Failed') {
      return { type, status: 'False', reason: 'PodFailed' };
    }
    if (unready.length === 0) {
      return { type, status: 'True' };
    }
    const message = `containers with unready status: [${unready.join(' ')}]`;
    return { type, status: 'False', reason: 'ContainersNotReady', message };
  };
  const incomplete = init.filter((c) => !isComplete(c)).map((c) => c.container.name);
  const conditions: PodCondition[] = [
    { type: 'PodReadyToStartContainers', status: done ? 'False' : 'True' },
    initialized
      ? { type: 'Initialized', status: 'True', ...(phase === 'Succeeded' ? { reason: 'PodCompleted' } : {}) }
      : {
          type: 'Initialized',
          status: 'False',
          reason: 'ContainersNotInitialized',
          message: `containers with incomplete status: [${incomplete.join(' ')}]`,
        },
    readiness('Ready'),
    readiness('ContainersReady'),
    { type: 'PodScheduled', status: 'True' },
  ];
  const told = clusterAddress(facts.address);
  return {
    phase,
    hostIP: facts.nodeAddress,
    hostIPs: [{ ip: facts.nodeAddress }],
    podIP: told,
    podIPs: [{ ip: told }],
    startTime: facts.startTime,
    conditions: withTransitions(pod.status?.conditions ?? [], conditions, now),
    ...(init.length > 0 ? { initContainerStatuses: init.map((c) => containerStatus(c, true)) } : {}),
    containerStatuses: main.map((c) => containerStatus(c, false)),
  };
}

/** Whether an init container has done its part: it ended well, or is a sidecar that has started. */
export function isComplete({ container, state, started }: ContainerFacts): boolean {
  return container.restartPolicy === 'Always' ? started : state.terminated?.exitCode === 0;
}

function isInitialized(init: readonly ContainerFacts[]): boolean {
  return init.every(isComplete);
}

function phaseOf({ pod, init, main, terminating }: PodFacts): string {
  const policy = pod.spec.restartPolicy ?? 'Always';
  if (!isInitialized(init)) {
    const failed = init.some((c) => c.state.terminated && c.state.terminated.exitCode !== 0);
    if (failed && (policy === 'Never' || terminating)) {
      return 'Failed';
    }
    if (!main.some((c) => c.state.running)) {
      return 'Pending';
    }
  }
  const ended = main.filter((c) => c.state.terminated);
  if (ended.length === main.length && (policy !== 'Always' || terminating)) {
    const failed = ended.some((c) => c.state.terminated?.exitCode !== 0);
    if (!failed) {
      return 'Succeeded';
    }
    if (policy === 'Never' || terminating) {
      return 'Failed';
    }
  }
  return main.some((c) => c.state.waiting && !c.lastState.terminated) ? 'Pending' : 'Running';
}

function containerStatus(facts: ContainerFacts, isInit: boolean): ContainerStatus {
  const { container, state, lastState, restartCount, containerId } = facts;
  return {
    name: container.name,
    image: container.image,
    imageID: containerId === undefined ? '' : container.image,
    ...(containerId === undefined ? {} : { containerID: containerId }),
    ready: isInit ? isComplete(facts) : facts.ready,
    started: facts.started,
    restartCount,
    state,
    lastState,
  };
}

function withTransitions(before: PodCondition[], now: PodCondition[], time: Date): PodCondition[] {
  const ours = now.map((condition) => {
    const old = before.find((candidate) => candidate.type === condition.type);
    const same = old?.status === condition.status && old.lastTransitionTime;
    return { ...condition, lastProbeTime: null, lastTransitionTime: same || rfc3339(time) };
  });
  return [...ours, ...before.filter((old) => !now.some((condition) => condition.type === old.type))];
}
