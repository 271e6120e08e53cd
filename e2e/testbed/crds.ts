import { readdir, readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { parseAllDocuments } from 'yaml';
import { type CustomResourceDefinition, crds, type KubeClient } from '../../lib/kube/index.ts';

/**
 * Applies the CustomResourceDefinitions of YAML files, and of all YAML files in folders, and waits until the API server
 * serves them. Documents of other kinds are refused.
 */
export async function applyCrds(client: KubeClient, paths: readonly string[], signal?: AbortSignal): Promise<void> {
  const files = (await Promise.all(paths.map(yamlFiles))).flat();
  const definitions = (await Promise.all(files.map(readCrds))).flat();
  await Promise.all(
    definitions.map(async (definition) => {
      await client.apply(crds, definition, { fieldManager: 'testbed', force: true, signal });
      while (!isEstablished(await client.get(crds, definition.metadata, signal))) {
        await setTimeout(50, undefined, { signal });
      }
    }),
  );
}

async function yamlFiles(path: string): Promise<string[]> {
  if (!(await stat(path)).isDirectory()) {
    return [path];
  }
  const names = await readdir(path);
  return names.filter((name) => /\.ya?ml$/.test(name)).map((name) => join(path, name));
}

async function readCrds(file: string): Promise<CustomResourceDefinition[]> {
  const objects = parseAllDocuments(await readFile(file, 'utf8')).map((document) => document.toJS() as unknown);
  return objects
    .filter((object) => object !== null && object !== undefined)
    .map((object) => {
      const definition = object as CustomResourceDefinition;
      if (definition.kind !== crds.kind) {
        throw new Error(`${file} has a ${definition.kind}: not a ${crds.kind}`);
      }
      return definition;
    });
}

function isEstablished(definition: CustomResourceDefinition | undefined): boolean {
  return definition?.status?.conditions?.some((c) => c.type === 'Established' && c.status === 'True') ?? false;
}
