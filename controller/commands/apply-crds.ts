import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { parseAllDocuments } from 'yaml';
import { z } from 'zod';
import { type CustomResourceDefinition, crds, isForbidden, KubeClient } from '../../lib/kube/index.ts';
import { command, FatalError } from '../../lib/ops/index.ts';
import { connectionOf } from '../daemon/index.ts';
import { fieldManager } from '../hub/index.ts';
import { applyCrdsFlags } from './flags.ts';

const definition = z.looseObject({
  kind: z.literal('CustomResourceDefinition'),
  metadata: z.looseObject({ name: z.string() }),
  spec: z.looseObject({}),
});

/**
 * Updates CRDs that the API server already has from files, before an upgrade: Helm never updates the CRDs of a chart's
 * folder `crds`. Helm installs those that the API server does not have.
 */
export const applyCrdsCommand = command({
  name: 'apply-crds',
  summary: "Upgrade the controller's CRDs from files",
  flags: applyCrdsFlags,
  run: async (flags, { signal, stdout }) => {
    const client = KubeClient.load(connectionOf(flags));
    try {
      for (const desired of await readDefinitions(flags.from)) {
        const { name } = desired.metadata;
        const before = await client.get(crds, { name }, signal);
        if (before === undefined) {
          stdout(`${name} is not installed: left alone\n`);
          continue;
        }
        const after = await apply(client, desired, signal);
        const isSame = after.metadata.generation === before.metadata.generation;
        stdout(`${name} ${isSame ? 'is up to date' : 'upgraded'}\n`);
      }
    } finally {
      await client.close();
    }
  },
});

/**
 * Reads the CRDs from the YAML files of a folder.
 * @throws FatalError with the name of a file that contains anything else
 */
async function readDefinitions(folder: string): Promise<CustomResourceDefinition[]> {
  const files = (await readdir(folder)).filter((file) => file.endsWith('.yaml')).sort();
  const texts = await Promise.all(files.map((file) => readFile(join(folder, file), 'utf8')));
  return texts.flatMap((text, index) =>
    parseAllDocuments(text)
      .filter((document) => document.contents !== null)
      .map((document) => {
        const { success, data } = definition.safeParse(document.toJS());
        if (!success) {
          throw new FatalError(`${join(folder, files[index] ?? '')} does not hold CustomResourceDefinitions`);
        }
        return data as unknown as CustomResourceDefinition;
      }),
  );
}

async function apply(client: KubeClient, desired: CustomResourceDefinition, signal: AbortSignal) {
  try {
    return await client.apply(crds, desired, { fieldManager, force: true, signal });
  } catch (error) {
    if (!isForbidden(error)) {
      throw error;
    }
    throw new FatalError(
      `CustomResourceDefinition ${desired.metadata.name} may not be changed: ${(error as Error).message}. Apply it by hand (kubectl apply --server-side --force-conflicts -f crds) and set crds.upgrade to false`,
      { cause: error },
    );
  }
}
