import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import Handlebars from 'handlebars';
import { parseAllDocuments } from 'yaml';
import type { KubeClient, KubeObject } from '../../lib/kube/index.ts';

const root = new URL('../..', import.meta.url).pathname;

/** Installs the Argo CD that managed clusters get: application controller, repo server and Redis. */
export async function applyDeliveredArgoCd(client: KubeClient, namespace: string): Promise<void> {
  for (const object of await deliveredArgoCd(namespace)) {
    const type = await client.resolve(object.apiVersion ?? '', object.kind ?? '');
    if (!type) {
      throw new Error(`the cluster does not serve ${object.kind}`);
    }
    await client.apply(type, object, { fieldManager: 'test', force: true });
  }
}

/** The managed cluster's Argo CD from the templates that the controller renders. */
async function deliveredArgoCd(namespace: string): Promise<KubeObject[]> {
  const handlebars = Handlebars.create();
  handlebars.registerHelper('q', (value: unknown) => JSON.stringify(value ?? ''));
  handlebars.registerHelper('base64', (value: string) => Buffer.from(value).toString('base64'));
  const read = (path: string) => readFile(join(root, 'templates', path), 'utf8');
  for (const name of await readdir(join(root, 'templates/partials'))) {
    handlebars.registerPartial(name.replace('.hbs', ''), await read(`partials/${name}`));
  }
  const values = {
    namespace,
    argoCDImage: 'quay.io/argoproj/argocd:v3.2.6',
    redisImage: 'redis:7',
    pullPolicy: 'IfNotPresent',
    repoServerHost: 'argocd-repo-server',
    repoServerPort: '8081',
    knownHosts: '',
    serverSecretKey: 'c2VjcmV0',
    redisPassword: 'secret',
  };
  const files = (await readdir(join(root, 'templates/argocd'))).filter((file) => file.endsWith('.yaml.hbs')).sort();
  const texts = await Promise.all(
    files.map(async (file) => handlebars.compile(await read(`argocd/${file}`), { noEscape: true })(values)),
  );
  return texts.flatMap((text) => parseAllDocuments(text).map((document) => document.toJS() as KubeObject));
}
