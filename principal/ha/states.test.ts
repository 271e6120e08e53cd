import { expect, test } from 'vitest';
import {
  demotionObjection,
  type HaState,
  HaStateMachine,
  haStates,
  promotionObjection,
  refusalIn,
  stateOfRefusal,
} from './states.ts';

test('a principal goes through the states of argocd-agent, and no other way', () => {
  const machine = new HaStateMachine();
  const seen: string[] = [];
  machine.subscribe((now, before) => seen.push(`${before}>${now}`));
  expect(machine.to('syncing')).toBe(true);
  expect(machine.to('disconnected')).toBe(false);
  expect(machine.to('replicating')).toBe(true);
  expect(machine.to('disconnected')).toBe(true);
  expect(machine.to('active')).toBe(true);
  expect(machine.to('disconnected')).toBe(false);
  expect(machine.to('replicating')).toBe(true);
  expect(seen).toEqual([
    'recovering>syncing',
    'syncing>replicating',
    'replicating>disconnected',
    'disconnected>active',
    'active>replicating',
  ]);
});

test('who may be promoted and demoted', () => {
  const promotable = (force: boolean) => haStates.filter((state) => promotionObjection(state, force) === undefined);
  expect(promotable(false)).toEqual(['disconnected']);
  expect(promotable(true)).toEqual(['syncing', 'replicating', 'disconnected']);
  expect(promotionObjection('active', true)).toBe('already active');
  expect(promotionObjection('recovering', true)).toBe(
    'can only promote from replicating or disconnected state, current: recovering',
  );
  expect(haStates.filter((state) => demotionObjection(state) === undefined)).toEqual(['active']);
  expect(demotionObjection('syncing')).toBe('can only demote from active state, current: syncing');
});

test.each<HaState>(['recovering', 'syncing', 'replicating', 'disconnected'])(
  'what a principal that is %s says tells its state',
  (state) => {
    expect(refusalIn(state)).toBe(`not accepting connections in state ${state}`);
    expect(stateOfRefusal(`The principal does not serve us now: ${refusalIn(state)}`)).toBe(state);
  },
);

test('other texts tell none', () => {
  expect(refusalIn('active')).toBeUndefined();
  expect(stateOfRefusal('not accepting connections in state of emergency')).toBeUndefined();
});
