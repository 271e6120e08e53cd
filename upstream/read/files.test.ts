import { expect, test } from 'vitest';
import { readParams } from './params.ts';
import { readProto } from './proto.ts';
import { crdSchemas, hasField, hasValue, readCrdFields, readValues } from './schema.ts';

const namesOf = (facts: readonly { readonly name: string }[]) => facts.map(({ name }) => name);

test('params of manifests and of templates, however they are written', () => {
  const deployment = `
        env:
        - name: A
          valueFrom:
            configMapKeyRef:
              name: {{ include "chart.name" . }}
              key: tool.a
              optional: true
        - name: B
          valueFrom:
            configMapKeyRef:
              key: "tool.b-c"
              name: params
        - name: SECRET
          valueFrom:
            secretKeyRef:
              name: secret
              key: no
        - { name: D, valueFrom: { configMapKeyRef: { name: params, key: tool.d } } }`;
  const params =
    'kind: ConfigMap\nmetadata:\n  name: params\ndata:\n  # tool.no: a comment\n  tool.a: ""\n  tool.e: "x"\n';
  expect(namesOf(readParams(new Map([['d.yaml', deployment]]), 'tool '))).toEqual([
    'tool tool.a',
    'tool tool.b-c',
    'tool tool.d',
  ]);
  expect(namesOf(readParams(new Map([['c.yaml', params]])))).toEqual(['tool.a', 'tool.e']);
});

test('what goes over the wire, however it is written', () => {
  const proto = `syntax = "proto3";
    package api;
    option go_package = "x";
    // message Comment { string a = 1; }
    message Event {
      map<string,  string> labels = 1;
      oneof body { bytes data = 2; string text=3 [deprecated = true]; }
      enum State { UNKNOWN = 0; READY = 1; }
      reserved 4, 5;
      State state = 6;
    }
    service Stream {
      rpc Push(stream Event)   returns (Event) {}
      rpc Ping(Event) returns(stream Event);
    }`;
  const facts = readProto(new Map([['a.proto', proto]]));
  expect(facts.map(({ name, within }) => [name, within])).toEqual([
    ['api.Event', undefined],
    ['api.Event map<string,string> labels = 1', 'api.Event'],
    ['api.Event bytes data = 2', 'api.Event'],
    ['api.Event string text = 3', 'api.Event'],
    ['api.Event.State', 'api.Event'],
    ['api.Event.State UNKNOWN = 0', 'api.Event.State'],
    ['api.Event.State READY = 1', 'api.Event.State'],
    ['api.Event State state = 6', 'api.Event'],
    ['api.Stream', undefined],
    ['api.Stream rpc Push(stream Event) returns (Event)', 'api.Stream'],
    ['api.Stream rpc Ping(Event) returns (stream Event)', 'api.Stream'],
  ]);
});

test('values of a chart with a schema and without', () => {
  const schema = {
    properties: {
      image: { properties: { tag: { type: 'string' } } },
      hosts: { type: 'array', items: { properties: { name: {} } } },
      more: { $ref: '#/definitions/labels' },
    },
    definitions: { labels: { additionalProperties: { properties: { key: {} } } } },
  };
  const facts = readValues('c', 'values.schema.json', JSON.stringify(schema));
  expect(facts.map(({ name, within }) => [name, within])).toEqual([
    ['c image', 'c'],
    ['c image.tag', 'c image'],
    ['c hosts', 'c'],
    ['c hosts[].name', 'c hosts'],
    ['c more', 'c'],
    ['c more{}.key', 'c more'],
  ]);
  expect(namesOf(readValues('c', 'values.yaml', 'image:\n  tag: x\nreplicas: 1\n'))).toEqual([
    'c image',
    'c image.tag',
    'c replicas',
  ]);
});

test('a schema without an end is refused', () => {
  const endless = {
    properties: { a: { $ref: '#/definitions/b' } },
    definitions: { b: { items: { $ref: '#/definitions/b' } } },
  };
  expect(() => readValues('c', 'values.schema.json', JSON.stringify(endless))).toThrow('a schema is too deep at a[][]');
});

test('a chart takes what its schema names, and what stands where it is open', () => {
  const own = {
    additionalProperties: false,
    properties: {
      image: { type: 'object', additionalProperties: false, properties: { tag: { type: 'string' } } },
      resources: { type: 'object' },
      labels: { additionalProperties: { type: 'string' } },
      hosts: { type: 'array', items: { additionalProperties: false, properties: { name: {} } } },
    },
  };
  const has = (path: string) => hasValue(own, 'c', `c ${path}`);
  expect(['image.tag', 'resources.limits.cpu', 'labels.team', 'hosts[].name'].filter((path) => !has(path))).toEqual([]);
  expect(['spire', 'image.digest', 'hosts[].port'].filter(has)).toEqual([]);
});

const crd = (fields: string, version = 'v1') => `
kind: CustomResourceDefinition
metadata: { name: things.example.org }
spec:
  versions:
    - name: ${version}
      schema: { openAPIV3Schema: { properties: { spec: { properties: ${fields} } } } }
`;

test('fields of CRDs, version by version, and where everything is kept', () => {
  const theirs = new Map([
    [
      't.yaml',
      `${crd('{ a: {}, b: { properties: { c: {} } }, d: { items: { properties: { e: {} } } } }')}---\nkind: Other\n`,
    ],
  ]);
  expect(namesOf(readCrdFields(theirs))).toEqual(
    ['', ' spec', ' spec.a', ' spec.b', ' spec.b.c', ' spec.d', ' spec.d[].e'].map(
      (path) => `things.example.org v1${path}`,
    ),
  );
  const ours = crdSchemas(
    new Map([
      [
        'o.yaml',
        crd(
          '{ a: {}, b: { "x-kubernetes-preserve-unknown-fields": true }, d: { items: {} }, m: { additionalProperties: { type: string } } }',
        ),
      ],
    ]),
  );
  const has = (name: string) => hasField(ours, `things.example.org ${name}`);
  expect(
    ['v1', 'v1 spec.a', 'v1 spec.b.c', 'v1 spec.d', 'v1 spec.m.team', 'v1 spec.m{}'].filter((name) => !has(name)),
  ).toEqual([]);
  expect(['v2', 'v2 spec.a', 'v1 spec.d[].e', 'v1 status'].filter(has)).toEqual([]);
});

test('a file that is no YAML or JSON is named', () => {
  expect(() => readValues('c', 'values.schema.json', '{')).toThrow(/^values\.schema\.json is no JSON: /);
  expect(() => readCrdFields(new Map([['bad.yaml', 'a: {{ b }}\n c']]))).toThrow(/^bad\.yaml is no YAML: /);
});
