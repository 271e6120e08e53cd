import { expect, test } from 'vitest';
import { onDeparture } from './departures.ts';

/** What is said of the departures of a replica that is there from the start and is the only one. */
function watchOne() {
  const peers = [{ identity: 'a', address: '10.0.0.1:8447', fingerprint: 'AA' }];
  let changed: (agent: string) => void = () => undefined;
  const said: boolean[] = [];
  const directory = {
    peers: () => peers,
    subscribe: (listener: (agent: string) => void) => {
      changed = listener;
      return () => undefined;
    },
  };
  onDeparture(directory, (isAlive) => said.push(isAlive('AA')));
  return { said, change: () => changed('edge'), leave: () => peers.splice(0) };
}

test('a replica that is there from the start and is the only one is noticed when it leaves', () => {
  const { said, change, leave } = watchOne();
  leave();
  change();
  expect(said).toEqual([false]);
});

test('nothing is said while all stay', () => {
  const { said, change } = watchOne();
  change();
  expect(said).toEqual([]);
});
