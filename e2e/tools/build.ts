import { createHash } from 'node:crypto';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { cacheFolder } from './cache.ts';
import { catalogue, type Recipe, type ToolName, type ToolVersion } from './catalogue.ts';
import { ToolError } from './error.ts';

/** What is to be built for a tool, and where it is kept. */
export interface Build {
  readonly recipe: ToolVersion;
  /** Has the go.mod. */
  readonly folder: string;
  /** Of the module that the tool comes from; empty for the project's own. */
  readonly version: string;
  /** Of the executable, when it has been built. */
  readonly path: string;
  /** False for a version that an environment variable chose. */
  readonly isDefault: boolean;
}

/**
 * How a tool is built, in the version that the environment asks for.
 * @throws ToolError when the catalogue has no such version
 */
export function buildOf(name: ToolName): Build {
  const recipe = chosenVersion(name);
  const folder = join(import.meta.dirname, recipe.folder);
  const path = join(cacheFolder(), `${name}-${digest(folder, recipe)}`, name);
  return { recipe, folder, version: moduleVersion(folder, recipe), path, isDefault: recipe === catalogue[name] };
}

/** Names everything that decides what the build yields, so that a change of it is a build of its own. */
function digest(folder: string, recipe: ToolVersion): string {
  const hash = createHash('sha256').update(JSON.stringify([process.platform, process.arch, recipe.goPackage]));
  hash.update(JSON.stringify(recipe.variables ?? {}));
  // What the program's own package has, and what fixes the versions of all others.
  const own = recipe.goPackage.startsWith('.') ? readdirSync(join(folder, recipe.goPackage)) : [];
  const sources = own.filter((file) => file.endsWith('.go')).map((file) => join(recipe.goPackage, file));
  const modules = ['go.mod', 'go.sum'].filter((file) => existsSync(join(folder, file)));
  for (const file of [...modules, ...sources.sort()]) {
    hash.update(`\0${file}\0`).update(readFileSync(join(folder, file)));
  }
  return hash.digest('hex').slice(0, 12);
}

function moduleVersion(folder: string, recipe: ToolVersion): string {
  const required = readFileSync(join(folder, 'go.mod'), 'utf8').matchAll(
    /^(?:require\s+|\t)(\S+) (v\S+)(?: \/\/ indirect)?$/gm,
  );
  for (const [, module = '', version = ''] of required) {
    if (recipe.module === module || recipe.goPackage === module || recipe.goPackage.startsWith(`${module}/`)) {
      return version;
    }
  }
  return '';
}

/** The version that the environment asks for. */
function chosenVersion(name: ToolName): ToolVersion {
  const recipe: Recipe = catalogue[name];
  const wanted = recipe.choice && process.env[recipe.choice.variable];
  if (
    !recipe.choice ||
    !wanted ||
    moduleVersion(join(import.meta.dirname, recipe.folder), recipe).startsWith(`v${wanted}.`)
  ) {
    return recipe;
  }
  const { variable, versions } = recipe.choice;
  const version = versions[wanted];
  if (!version) {
    const message = `${variable}=${wanted}: there is no recipe for this version; unset it, or set it to one of: ${Object.keys(versions).join(', ')}`;
    throw new ToolError('NoSuchVersion', message);
  }
  return version;
}
