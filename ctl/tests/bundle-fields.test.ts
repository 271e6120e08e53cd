import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { parse } from 'yaml';
import { redacted, redactText } from '../bundle/redact.ts';

const text = 'x';
const source = {
  repoURL: text,
  path: text,
  chart: text,
  targetRevision: text,
  ref: text,
  name: text,
  helm: {
    values: text,
    valuesObject: { name: text, status: { message: text } },
    parameters: [{ name: text, value: text, forceString: true }],
    fileParameters: [{ name: text, path: text }],
    valueFiles: [text],
    releaseName: text,
    version: text,
    kubeVersion: text,
    apiVersions: [text],
    namespace: text,
  },
  kustomize: {
    patches: [{ patch: text, path: text, target: { kind: text, name: text }, options: { x: true } }],
    images: [text],
    namePrefix: text,
    commonLabels: { app: text },
    commonAnnotations: { note: text },
    components: [text],
    replicas: [{ name: text, count: 1 }],
    version: text,
  },
  directory: { jsonnet: { extVars: [{ name: text, value: text, code: true }], tlas: [{ name: text, value: text }] } },
  plugin: {
    name: text,
    env: [{ name: text, value: text }],
    parameters: [{ name: text, string: text, map: { name: text } }],
  },
};
const sync = {
  revision: text,
  manifests: [text],
  source,
  sources: [source],
  resources: [{ group: text, kind: text, name: text, namespace: text }],
  syncOptions: [text],
  syncStrategy: { hook: { force: true } },
};
const operation = { sync, info: [{ name: text, value: text }], initiatedBy: { username: text }, retry: { limit: 1 } };
const metadata = {
  name: text,
  namespace: text,
  uid: text,
  annotations: { note: text, 'kubectl.kubernetes.io/last-applied-configuration': text },
  managedFields: [{ manager: text }],
};
const container = {
  name: text,
  image: text,
  args: [text],
  command: [text],
  workingDir: text,
  env: [
    { name: text, value: text },
    { name: text, valueFrom: { secretKeyRef: { name: text, key: text } } },
  ],
  livenessProbe: {
    exec: { command: [text] },
    httpGet: { path: text, port: text, httpHeaders: [{ name: text, value: text }] },
  },
  lifecycle: { preStop: { exec: { command: [text] } } },
  volumeMounts: [{ name: text, mountPath: text, subPathExpr: text }],
};

const objects: Record<string, object> = {
  Application: {
    metadata,
    spec: {
      project: text,
      source,
      sources: [source],
      sourceHydrator: { drySource: source, syncSource: { targetBranch: text, path: text } },
      destination: { server: text, name: text, namespace: text },
      info: [{ name: text, value: text }],
      ignoreDifferences: [{ group: text, jqPathExpressions: [text], jsonPointers: [text] }],
      syncPolicy: { syncOptions: [text], managedNamespaceMetadata: { labels: { a: text }, annotations: { a: text } } },
    },
    operation,
    status: {
      sync: { status: text, revision: text, comparedTo: { source, sources: [source], destination: { name: text } } },
      health: { status: text, message: text },
      history: [{ id: 1, revision: text, source, initiatedBy: { username: text } }],
      operationState: {
        phase: text,
        message: text,
        operation,
        syncResult: { revision: text, source, resources: [{ message: text }] },
      },
      conditions: [{ type: text, message: text }],
      summary: { images: [text], externalURLs: [text] },
    },
  },
  AppProject: {
    metadata,
    spec: {
      description: text,
      sourceRepos: [text],
      destinations: [{ server: text, name: text, namespace: text }],
      roles: [{ name: text, description: text, groups: [text], policies: [text], jwtTokens: [{ id: text }] }],
      signatureKeys: [{ keyID: text }],
      orphanedResources: { ignore: [{ name: text }] },
    },
    status: { jwtTokensByRole: { name: { items: [{ id: text }] } } },
  },
  ConfigMap: { metadata, data: { 'dex.config': text, name: text, message: text }, binaryData: { name: text } },
  Secret: { metadata, type: text, data: { name: text }, stringData: { name: text } },
  Pod: {
    metadata,
    spec: {
      containers: [container],
      initContainers: [container],
      ephemeralContainers: [container],
      volumes: [{ name: text, secret: { secretName: text }, csi: { driver: text, volumeAttributes: { name: text } } }],
      serviceAccountName: text,
      imagePullSecrets: [{ name: text }],
      hostAliases: [{ ip: text, hostnames: [text] }],
    },
    status: {
      phase: text,
      message: text,
      containerStatuses: [{ name: text, image: text, state: { waiting: { message: text } } }],
    },
  },
};

/** The same with a marker in every text, which says where it is. */
function marked(value: unknown, path: string): unknown {
  if (typeof value === 'string') {
    return `MARKER(${path})`;
  }
  if (Array.isArray(value)) {
    return value.map((one) => marked(one, path));
  }
  return typeof value === 'object' && value !== null
    ? Object.fromEntries(Object.entries(value).map(([key, one]) => [key, marked(one, `${path}.${key}`)]))
    : value;
}

/** What may be free text of a user: anything at or below these. */
const ofUsers =
  /\.(helm|kustomize|directory|plugin|manifests|info|args|command|workingDir|value|exec|httpHeaders|lifecycle|data|binaryData|stringData|annotations|managedFields|ignoreDifferences|syncOptions|username|description|policies|jwtTokens|jwtTokensByRole|signatureKeys|orphanedResources|externalURLs|csi|subPathExpr|imagePullSecrets|hostAliases|groups)\b/;

/** Paths of the marked texts that stay. */
function shownOf(kind: string, object: object): string[] {
  const shown = redacted({ kind, ...object } as never);
  return [...JSON.stringify(shown).matchAll(/MARKER\(([^)]*)\)/g)].map(([, path]) => path as string);
}

test.each(Object.keys(objects))('of the texts of a %s only names, addresses, states and messages stay', (kind) => {
  const shown = shownOf(kind, marked(objects[kind], '') as object);
  expect(shown).toContain('.metadata.name');
  expect(shown.filter((path) => ofUsers.test(path))).toEqual([]);
  const leaves = new Set(shown.map((path) => path.split('.').at(-1)));
  const known =
    'name namespace uid repoURL path chart targetRevision ref revision targetBranch project server type status message phase image images group kind secretName serviceAccountName key mountPath port sourceRepos';
  expect([...leaves].filter((leaf) => !known.split(' ').includes(leaf as string))).toEqual([]);
});

interface Schema {
  readonly type?: string;
  readonly properties?: Record<string, Schema>;
  readonly additionalProperties?: Schema;
  readonly items?: Schema;
}

/** A value with every field of a schema; what the schema leaves open has fields with names that are shown elsewhere. */
function filled({ type, properties, additionalProperties, items }: Schema): unknown {
  if (properties !== undefined) {
    return Object.fromEntries(Object.entries(properties).map(([key, schema]) => [key, filled(schema)]));
  }
  if (items !== undefined) {
    return [filled(items)];
  }
  if (type === 'object') {
    return {
      name: additionalProperties === undefined ? text : filled(additionalProperties),
      status: { message: text },
    };
  }
  return type === 'integer' || type === 'boolean' ? 1 : text;
}

test.each([
  ['Application', 'applications'],
  ['AppProject', 'appprojects'],
])('of all fields that the CRD of %s has, none that a user may fill freely stays', (kind, plural) => {
  const folder = new URL('../../charts/argocd-agent-addon/charts/argocd-hub/files/crds/', import.meta.url);
  const crd = parse(readFileSync(new URL(`${plural}.yaml`, folder), 'utf8'));
  const { spec, status, operation } = crd.spec.versions[0].schema.openAPIV3Schema.properties as Record<string, Schema>;
  const all = { spec: filled(spec ?? {}), status: filled(status ?? {}), operation: filled(operation ?? {}) };
  const shown = shownOf(kind, marked({ metadata, ...all }, '') as object);
  expect(shown.length).toBeGreaterThan(10);
  expect(shown.filter((path) => ofUsers.test(path))).toEqual([]);
});

test('a field that nobody knows is left out, and what it is is said', () => {
  const object = {
    kind: 'Application',
    metadata: { name: 'x' },
    spec: { novelty: { name: 'hunter2' }, list: ['hunter2'] },
  };
  expect(redacted(object as never)).toMatchObject({
    spec: { novelty: '<redacted> 1 fields', list: '<redacted> 1 items' },
  });
});

test.each([
  'https://user:hunter2@git/x',
  'https://git/x?private_token=hunter2',
  'helm --set db.password=hunter2 failed',
  'DB_PWD: hunter2',
  '"clientSecret": "hunter2 and more"',
])('%s is shown without the secret', (said) => {
  expect(redactText(said)).not.toContain('hunter2');
});
