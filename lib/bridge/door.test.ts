import { expect, test } from 'vitest';
import { agentSource, eventTypes, messageEvent, type WireEvent } from '../wire/index.ts';
import { messageOf } from './index.ts';

// What a peer may have read at all. The rest of what a hostile peer can do is in principal/hostile/messages.it.test.ts.

const origin = { source: agentSource };
const report = (metadata: object) =>
  messageEvent('application', eventTypes.statusUpdate, { metadata: { name: 'app', ...metadata }, spec: {} }, origin);
const text = (json: string): WireEvent => ({ ...report({}), data: Buffer.from(json) });

test.each(['', '.', '..', 'a/b', 'A', ' a', 'a\n', 'a\u0000', 'ü', '__proto__', 'a'.repeat(254), 'a'.repeat(10_000)])(
  'a name that no object can have is refused (%#)',
  (name) => {
    expect(() => messageOf(report({ name }))).toThrow(/metadata.name/);
    const error = { resourceName: name, resourceNamespace: '', message: '' };
    expect(() => messageOf(messageEvent('application', eventTypes.error, error, origin))).toThrow(/resourceName/);
    const told = { kind: 'Application', name, uid: '', checksum: null };
    expect(() => messageOf(messageEvent('resourceResync', eventTypes.requestUpdate, told, origin))).toThrow(/name/);
  },
);

test.each(['a.b', 'a/b', '..', 'A', 'a'.repeat(64)])('a namespace that cannot be is refused (%#)', (namespace) => {
  expect(() => messageOf(report({ namespace }))).toThrow(/metadata.namespace/);
});

test.each(['a b', 'a\n', 'ü', 'a'.repeat(129)])('a uid that none gives is refused (%#)', (uid) => {
  expect(() => messageOf(report({ uid }))).toThrow(/metadata.uid/);
});

test('what is larger than any object is not even parsed', () => {
  const large = { ...report({}), data: Buffer.alloc(4 * 1024 * 1024 + 1, '[') };
  expect(() => messageOf(large)).toThrow(/has 4194305 bytes; 4194304 are accepted/);
});

test('what is nested deeper than anybody needs is not parsed; brackets in texts do not count', () => {
  const nested = (depth: number) => `{"metadata":{"name":"a"},"spec":{},"x":${'['.repeat(depth)}${']'.repeat(depth)}}`;
  expect(messageOf(text(nested(900)))).toBeDefined();
  expect(() => messageOf(text(nested(1_000)))).toThrow(/nested more than 1000 deep/);
  expect(() => messageOf(text(nested(1_000_000)))).toThrow(/nested more than 1000 deep/);
  expect(messageOf(text(`{"metadata":{"name":"a"},"spec":{},"x":"\\"${'['.repeat(5_000)}"}`))).toBeDefined();
});

test('errors quote no values, which may be secret, and little of anything else', () => {
  const errors = [
    text('{"metadata":{"name":"app"},"data":{"password":"hunter2'),
    text('{"metadata":{"name":"app","labels":"hunter2"},"spec":{}}'),
    text(`{"metadata":{"name":"app","labels":{"${'k'.repeat(100_000)}":7}},"spec":{}}`),
  ].map((event) => {
    try {
      return messageOf(event) && undefined;
    } catch (error) {
      return error as Error;
    }
  });
  for (const error of errors) {
    expect(error).toBeInstanceOf(Error);
    const told = `${error?.message}${error?.stack}${JSON.stringify(error?.cause)}`;
    expect(told).not.toContain('hunter');
    expect(error?.message.length).toBeLessThan(500);
  }
});

test('prototypes cannot be given', () => {
  const message = messageOf(
    text('{"metadata":{"name":"a","__proto__":{"uid":"x"}},"spec":{"__proto__":{"project":"x"}}}'),
  );
  if (message?.target !== 'application' || message.type === 'error') {
    throw new Error('it is no message about an object');
  }
  expect(message.object.metadata.uid).toBeUndefined();
  expect(message.object.spec.project).toBeUndefined();
  expect(Object.getPrototypeOf(message.object.spec)).toBe(Object.prototype);
});
