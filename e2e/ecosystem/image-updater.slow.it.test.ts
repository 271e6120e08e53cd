import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, onTestFailed, test } from 'vitest';
import { until } from '../../lib/base/testing.ts';
import { type KubeObject, resourceType } from '../../lib/kube/index.ts';
import { installCrds, readCrds } from '../hub/index.ts';
import {
  type ArgoObject,
  application,
  namespace,
  type Pair,
  Program,
  pairApplications,
  startPair,
} from '../pair/index.ts';
import { startTagRegistry, type TagRegistry } from './registry.ts';

// Argo CD Image Updater on the hub, with its write-back method `argocd`: it writes spec.source of the hub's Application, by
// what the agent has reported in status.summary.images. IMAGE_UPDATER_BIN=<file> with IMAGE_UPDATER_SOURCE=<folder> is the
// program itself; without it, a test makes the same writes.

interface ImageUpdater extends KubeObject {
  spec: object;
}
const imageUpdaters = resourceType<ImageUpdater>({
  group: 'argocd-image-updater.argoproj.io',
  version: 'v1alpha1',
  kind: 'ImageUpdater',
  plural: 'imageupdaters',
  namespaced: true,
});
const { IMAGE_UPDATER_BIN: executable = '', IMAGE_UPDATER_SOURCE: source = '' } = process.env;

let pair: Pair;
let registry: TagRegistry;
let folder: string;
let said = '';

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'image-updater-'));
  registry = await startTagRegistry();
  pair = await startPair();
});
afterAll(async () => {
  await pair?.stop();
  registry?.stop();
  await rm(folder, { recursive: true, force: true });
});
beforeEach(() => onTestFailed(() => console.error(said, pair.agent.output.slice(-3_000))));

const onHub = async (name: string) =>
  (await pair.hub.client.get(pairApplications, { name, namespace: pair.name })) as ArgoObject;
const onCluster = async (name: string) =>
  (await pair.managed.client.get(pairApplications, { name, namespace })) as ArgoObject;
const imagesOf = ({ spec }: ArgoObject) => (spec.source as { kustomize?: { images?: string[] } }).kustomize?.images;

/** An Application of the hub that runs an image, as its cluster reports. */
async function running(name: string, image: string): Promise<void> {
  const { client } = pair.hub;
  await client.create(pairApplications, application({ name, namespace: pair.name }));
  await until('it is on the cluster', () => onCluster(name));
  const status = {
    sync: { status: 'Synced' },
    health: { status: 'Healthy' },
    sourceType: 'Kustomize',
    summary: { images: [image] },
  };
  await pair.managed.client.mergePatch(pairApplications, { name, namespace }, { status });
  await until('the hub knows', async () => (await onHub(name)).status?.summary !== undefined);
}

async function delivered(name: string, image: string): Promise<void> {
  await until(async () => expect(imagesOf(await onCluster(name))).toEqual([image]));
  const { status } = await onHub(name);
  expect(status).toMatchObject({ health: { status: 'Healthy' }, sourceType: 'Kustomize' });
  // The agent does not take it back.
  await pair.hub.client.mergePatch(pairApplications, { name, namespace: pair.name }, {
    metadata: { labels: { later: 'yes' } },
  } as never);
  await until('a later edit is there', async () => (await onCluster(name)).metadata.labels?.later === 'yes');
  expect(imagesOf(await onHub(name))).toEqual([image]);
  expect(imagesOf(await onCluster(name))).toEqual([image]);
}

test('the same writes: a spec with another image goes to the cluster, and stays', async () => {
  const image = `${registry.host}/shop/copied`;
  await running('copied', `${image}:1.0.0`);
  // It reads the Application, and updates it as a whole; after a conflict again.
  await until('it is written', async () => {
    const read = await onHub('copied');
    const spec = {
      ...read.spec,
      source: { ...(read.spec.source as object), kustomize: { images: [`${image}:1.1.0`] } },
    };
    const path = `/apis/argoproj.io/v1alpha1/namespaces/${pair.name}/applications/copied`;
    const typed = { apiVersion: 'argoproj.io/v1alpha1', kind: 'Application' };
    const answer = await pair.hub.client.request(path, { method: 'PUT', body: { ...typed, ...read, spec } });
    return await answer.body.text();
  });
  await delivered('copied', `${image}:1.1.0`);
});

describe('Argo CD Image Updater, the program itself', { tags: 'image-updater' }, () => {
  /** Runs it once over all its objects. */
  async function updateImages(): Promise<void> {
    const registries = { registries: [{ name: 'local', prefix: registry.host, api_url: `http://${registry.host}` }] };
    await writeFile(join(folder, 'registries.yaml'), JSON.stringify(registries));
    const program = new Program(
      [
        ...['run', '--once', '--loglevel=debug', '--leader-election=false'],
        `--argocd-namespace=${namespace}`,
        `--registries-conf-path=${join(folder, 'registries.yaml')}`,
      ],
      { HOME: folder, KUBECONFIG: pair.hub.kubeconfig },
      executable,
    );
    program.start();
    const code = await program.exited();
    said = program.output;
    expect(code, said).toBe(0);
  }

  test('brings newer tags of the registry to the cluster by way of the hub', async () => {
    await installCrds(pair.hub.client, await readCrds(join(source, 'config/crd/bases')));
    const image = `${registry.host}/shop/web`;
    registry.tags.set('shop/web', ['1.0.0', '1.1.0', '2.0.0-rc1']);
    await running('web', `${image}:1.0.0`);
    await pair.hub.client.create(imageUpdaters, {
      metadata: { name: 'shop', namespace: pair.name },
      spec: {
        writeBackConfig: { method: 'argocd' },
        applicationRefs: [
          {
            namePattern: 'web',
            images: [{ alias: 'web', imageName: `${image}:~1`, commonUpdateSettings: { updateStrategy: 'semver' } }],
          },
        ],
      },
    });
    await updateImages();
    await delivered('web', `${image}:1.1.0`);
    // The cluster runs it now, and says so; another tag appears.
    const status = { summary: { images: [`${image}:1.1.0`] } };
    await pair.managed.client.mergePatch(pairApplications, { name: 'web', namespace }, { status });
    await until('the hub knows', async () => JSON.stringify((await onHub('web')).status?.summary).includes('1.1.0'));
    const { resourceVersion } = (await onHub('web')).metadata;
    await updateImages();
    expect((await onHub('web')).metadata.resourceVersion).toBe(resourceVersion);
    registry.tags.get('shop/web')?.push('1.2.0');
    await updateImages();
    await delivered('web', `${image}:1.2.0`);
  });
});
