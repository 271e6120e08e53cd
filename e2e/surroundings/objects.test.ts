import { expect, it } from 'vitest';
import { fieldsOfTwo, fingerprint } from './objects.ts';

const object = (managedFields: object[], more: object = {}) => ({
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { namespace: 'a', name: 'b', managedFields, resourceVersion: '1' },
  ...more,
});

it('finds the fields that two managers own, and no others', () => {
  const helm = {
    manager: 'helm',
    fieldsV1: { 'f:metadata': { 'f:labels': { '.': {}, 'f:x': {} } }, 'f:data': { 'f:c': {}, 'f:d': {} } },
  };
  const other = {
    manager: 'other',
    fieldsV1: {
      'f:metadata': { 'f:labels': { '.': {}, 'f:y': {} } },
      'f:data': { 'f:d': {} },
      'f:spec': { 'f:ports': { 'k:{"port":1}': { '.': {}, 'f:port': {} } } },
    },
  };
  expect(fieldsOfTwo(object([helm, other]))).toEqual(['ConfigMap a/b data.d: helm, other']);
  expect(fieldsOfTwo(object([other, { ...other, manager: 'third' }]))).toContain(
    'ConfigMap a/b spec.ports[{"port":1}].port: other, third',
  );
  expect(fieldsOfTwo(object([helm, helm]))).toEqual([]);
});

it('tells objects apart that somebody has written, but not by what their status was meanwhile', () => {
  const one = object([], { data: { a: '1' } });
  expect(fingerprint(one)).toBe(fingerprint({ ...one, metadata: { ...one.metadata, managedFields: [{}] } }));
  expect(fingerprint(one)).not.toBe(fingerprint({ ...one, metadata: { ...one.metadata, resourceVersion: '2' } }));
  const living = (resourceVersion: string, replicas: number) =>
    fingerprint({ ...object([], { status: { replicas } }), metadata: { name: 'b', generation: 1, resourceVersion } });
  expect(living('1', 0)).toBe(living('2', 1));
});
