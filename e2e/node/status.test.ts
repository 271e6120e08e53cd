import { describe, expect, it } from 'vitest';
import { type ContainerFacts, type PodFacts, podStatus } from './status.ts';
import type { ContainerState, KubeletPod } from './types.ts';

const now = new Date('2030-01-01T00:00:00Z');
const at = { startedAt: '', finishedAt: '' };
const running: ContainerState = { running: { startedAt: '' } };
const creating: ContainerState = { waiting: { reason: 'ContainerCreating' } };
const ended = (exitCode: number): ContainerState => ({ terminated: { exitCode, reason: 'x', ...at } });

function container(name: string, state: ContainerState, more: Partial<ContainerFacts> = {}): ContainerFacts {
  const facts = { container: { name, image: 'i' }, state, lastState: {}, restartCount: 0, containerId: undefined };
  return { ...facts, ready: state.running !== undefined, started: state.running !== undefined, ...more };
}

function statusOf(main: ContainerFacts[], more: Partial<PodFacts> = {}, restartPolicy = 'Always', status = {}) {
  const pod: KubeletPod = { metadata: { name: 'p' }, spec: { containers: [], restartPolicy }, status };
  const facts = { pod, address: '127.1.2.3', nodeAddress: '127.1.2.1', startTime: '', init: [], terminating: false };
  return podStatus({ ...facts, main, ...more }, now);
}

const condition = (status: ReturnType<typeof podStatus>, type: string) =>
  status.conditions?.find((candidate) => candidate.type === type);

describe('podStatus', () => {
  it('tells the cluster an address that it accepts as an endpoint', () => {
    expect(statusOf([container('a', running)])).toMatchObject({ podIP: '10.1.2.3', hostIP: '127.1.2.1' });
  });

  it.each<[string, ContainerFacts[], string, string]>([
    ['nothing has started', [container('a', running), container('b', creating)], 'Always', 'Pending'],
    ['all run', [container('a', running)], 'Always', 'Running'],
    ['one waits for its restart', [container('a', creating, { lastState: ended(1) })], 'Always', 'Running'],
    ['all ended well', [container('a', ended(0))], 'Never', 'Succeeded'],
    ['one failed for good', [container('a', ended(0)), container('b', ended(1))], 'Never', 'Failed'],
    ['one still runs', [container('a', running), container('b', ended(1))], 'Never', 'Running'],
  ])('phase when %s', (_, main, policy, phase) => {
    expect(statusOf(main, {}, policy).phase).toBe(phase);
  });

  it('is Pending until init containers are done, Failed when one cannot be', () => {
    const main = [container('a', creating)];
    expect(statusOf(main, { init: [container('i', running)] }).phase).toBe('Pending');
    expect(statusOf(main, { init: [container('i', ended(1))] }, 'Never').phase).toBe('Failed');
    const status = statusOf(main, { init: [container('i', running)] });
    expect(condition(status, 'Initialized')?.message).toBe('containers with incomplete status: [i]');
  });

  it('is ready when every container is, and says which are not', () => {
    expect(condition(statusOf([container('a', running)]), 'Ready')?.status).toBe('True');
    const status = statusOf([container('a', running), container('b', running, { ready: false })]);
    expect(condition(status, 'Ready')).toMatchObject({
      status: 'False',
      reason: 'ContainersNotReady',
      message: 'containers with unready status: [b]',
    });
  });

  it('keeps the transition time of what has not changed, and the conditions of others', () => {
    const before = {
      conditions: [
        { type: 'Ready', status: 'True', lastTransitionTime: 'then' },
        { type: 'x/y', status: 'True' },
      ],
    };
    expect(condition(statusOf([container('a', running)], {}, 'Always', before), 'Ready')?.lastTransitionTime).toBe(
      'then',
    );
    const turned = statusOf([container('a', creating)], {}, 'Always', before);
    expect(condition(turned, 'Ready')?.lastTransitionTime).toBe('2030-01-01T00:00:00Z');
    expect(condition(turned, 'x/y')).toEqual({ type: 'x/y', status: 'True' });
  });
});
