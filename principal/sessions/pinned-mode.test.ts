import { expect, test } from 'vitest';
import { AuthError } from '../../lib/auth/index.ts';
import { checkMode, type ModeSources, pinnedMode } from './pinned-mode.ts';

/** `declared`: the mode in each cluster Secret of the agent; undefined without a Secret. */
function sources(declared: ('managed' | 'autonomous' | undefined)[] | undefined, recorded?: string): ModeSources {
  return {
    agents: {
      has: () => declared !== undefined,
      clustersOf: () =>
        (declared ?? []).map((mode) => ({ mode, name: '', server: '', secret: { metadata: { name: 's' } } })),
    },
    recorded: () => recorded,
  };
}

test.each([
  ['first connection', sources([undefined]), undefined],
  ['as in its last connection', sources([undefined], 'managed'), 'managed'],
  ["the operator's setting takes precedence", sources(['autonomous'], 'managed'), 'autonomous'],
  ['one of several Secrets has it', sources([undefined, 'autonomous']), 'autonomous'],
  ['a record that makes no sense pins nothing', sources([undefined], 'sometimes'), undefined],
  ['without a Secret nothing is pinned', sources(undefined, 'managed'), undefined],
] as const)('%s', (_, from, pinned) => {
  expect(pinnedMode(from, 'a')).toBe(pinned);
});

test('defect 44: another mode is refused with advice, which the agent gets', () => {
  const come = () => checkMode(sources([undefined], 'managed'), { agent: 'a', mode: 'autonomous' });
  expect(come).toThrow(AuthError);
  try {
    come();
  } catch (error) {
    const { code, agent, message, hint, answer } = error as AuthError;
    expect([code, agent]).toEqual(['wrong-mode', 'a']);
    expect(message).toBe('It comes as autonomous, but it has been managed since it first connected');
    expect(hint).toContain('argocd-agent.argoproj-labs.io/agent-mode');
    expect(answer).toContain('pinned to managed');
  }
  expect(() => checkMode(sources(['managed']), { agent: 'a', mode: 'autonomous' })).toThrow(/its cluster Secret says/);
});

test('the right mode, or any that is not pinned, passes', () => {
  checkMode(sources([undefined], 'managed'), { agent: 'a', mode: 'managed' });
  checkMode(sources(['autonomous'], 'managed'), { agent: 'a', mode: 'autonomous' });
  checkMode(sources([undefined]), { agent: 'a', mode: 'autonomous' });
});
