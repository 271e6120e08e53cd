import { execFile } from 'node:child_process';
import { mkdir, readdir, rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { promisify } from 'node:util';

const run = promisify(execFile);
const here = dirname(fileURLToPath(import.meta.url));
const bin = join(here, '..', 'node_modules', '.bin');

/**
 * How ts-proto writes the code: erasable TypeScript for ES modules, presence by `undefined`, `oneof` as optional
 * fields (cheapest to encode), 64-bit numbers as bigint. No service stubs: they would load @grpc/grpc-js into every
 * program, and lib/wire names its methods itself.
 */
const pluginOptions = [
  'esModuleInterop=true',
  'importSuffix=.ts',
  'outputServices=none',
  'env=node',
  'forceLong=bigint',
  'useOptionals=none',
  'outputJsonMethods=false',
  'outputPartialMethods=true',
  'useExactTypes=false',
  'useMapType=false',
  'removeEnums=false',
  'oneof=optional',
];

/** Generates TypeScript for the .proto files of this folder into `target`, which is emptied first. */
export async function generate(target: string): Promise<void> {
  await rm(target, { recursive: true, force: true });
  await mkdir(target, { recursive: true });
  const template = {
    version: 'v2',
    plugins: [{ local: join(bin, 'protoc-gen-ts_proto'), out: target, opt: pluginOptions, include_imports: true }],
  };
  // Node comes first on the PATH: the plugin must run on the Node that runs this script.
  const environment = { ...process.env, PATH: `${dirname(process.execPath)}:${process.env.PATH ?? ''}` };
  const args = ['generate', '--template', JSON.stringify(template)];
  await run(join(bin, 'buf'), args, { cwd: here, env: environment });
}

/** The generated files under `folder`, as sorted relative paths. */
export async function generatedFiles(folder: string): Promise<string[]> {
  const entries = await readdir(folder, { recursive: true });
  return entries.filter((entry) => entry.endsWith('.ts')).sort();
}

if (process.argv[1] !== undefined && import.meta.url === pathToFileURL(process.argv[1]).href) {
  await generate(join(here, 'gen'));
}
