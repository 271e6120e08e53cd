import { createHash } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

/** A file that pages refer to. */
export interface PageAsset {
  readonly type: string;
  readonly body: Buffer;
  /** Changes when the file does. */
  readonly digest: string;
}

const types = {
  'fleet.css': 'text/css; charset=utf-8',
  'fleet.js': 'text/javascript; charset=utf-8',
  'extension-fleet.js': 'text/javascript; charset=utf-8',
  'icon.svg': 'image/svg+xml',
} as const;

/** Reads the style sheet, the scripts and the icon. In the image they are beside the programs, as they are in the source. */
export function readPageAssets(): Readonly<Record<keyof typeof types, PageAsset>> {
  const own = join(import.meta.dirname, 'assets');
  const folder = existsSync(own) ? own : join(import.meta.dirname, '..', 'fleet-page');
  const read = (name: keyof typeof types): PageAsset => {
    const body = readFileSync(join(folder, name));
    return { type: types[name], body, digest: createHash('sha256').update(body).digest('hex').slice(0, 12) };
  };
  return {
    'fleet.css': read('fleet.css'),
    'fleet.js': read('fleet.js'),
    'extension-fleet.js': read('extension-fleet.js'),
    'icon.svg': read('icon.svg'),
  };
}
