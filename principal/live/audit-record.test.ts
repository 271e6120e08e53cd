import type { IncomingMessage } from 'node:http';
import { expect, test } from 'vitest';
import { type AuditRecord, auditOf } from './audit-record.ts';

function verbOf(url: string): string | undefined {
  const records: AuditRecord[] = [];
  const request = { method: 'GET', url, headers: {}, socket: {} } as unknown as IncomingMessage;
  auditOf({ audit: (record) => void records.push(record) }, request).end(200);
  return records[0]?.verb;
}

test.each([
  ['watch=1', 'watch'],
  ['watch=true', 'watch'],
  ['watch=T', 'watch'],
  ['watch=yes', 'watch'],
  ['watch', 'watch'],
  ['%77atch=1', 'watch'],
  ['a=?&watch=1', 'watch'],
  ['watch=0', 'list'],
  ['watch=FALSE', 'list'],
  ['xwatch=1', 'list'],
  ['', 'list'],
])('a GET of a collection with the query %j is a %s, as the API server reads it', (query, verb) => {
  expect(verbOf(`/api/v1/pods?${query}`)).toBe(verb);
});

test('a GET of one object is never a watch', () => {
  expect(verbOf('/api/v1/namespaces/shop/pods/web?watch=1')).toBe('get');
});
