import { expect, test } from 'vitest';
import { type ClusterSigns, clusterFacts } from './cluster-facts.ts';

const hour = 3_600_000;
const day = 24 * hour;
const now = new Date('2026-06-01T12:00:00Z');

function withCertificate(lifeMs: number, leftMs: number) {
  const ends = now.getTime() + leftMs;
  const signs: ClusterSigns = {
    agent: 'east',
    title: 'east',
    mode: 'managed',
    version: '1.0.0',
    connectedSince: now,
    lastSeen: undefined,
    refused: undefined,
    pending: 0,
    pendingSince: undefined,
    certificate: { from: new Date(ends - lifeMs), ends: new Date(ends) },
    applications: { total: 0, health: {}, sync: {} },
  };
  const { state, term, why } = clusterFacts(signs, now);
  return { state, term, why };
}

// Of clusters that request their certificates themselves, of those whose keys the hub makes, and of somebody else.
test.each([
  ['a day', day],
  ['30 days', 30 * day],
  ['a year', 365 * day],
])('a certificate of %s counts as late when its agent should have the next one, and not before', (_, life) => {
  expect(withCertificate(life, life)).toMatchObject({ state: 'ready', why: '' });
  // The agent looks for the next one now.
  expect(withCertificate(life, life / 10)).toMatchObject({ state: 'ready', why: '' });
  expect(withCertificate(life, life / 25)).toMatchObject({ state: 'attention', term: 'overdue' });
  expect(withCertificate(life, -hour)).toEqual({
    state: 'attention',
    term: 'expired',
    why: 'Its certificate expired at 2026-06-01 11:00 UTC.',
  });
});

test('what a certificate has left is told in terms, whatever its life is', () => {
  expect(withCertificate(day, day).term).toBe('week');
  expect(withCertificate(30 * day, 20 * day).term).toBe('month');
  expect(withCertificate(365 * day, 200 * day).term).toBe('later');
});
