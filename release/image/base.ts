import { existsSync, globSync, lstatSync, readFileSync, readlinkSync } from 'node:fs';
import { join } from 'node:path';
import { needsOf } from './elf.ts';

/** The files of another image, in a folder. Links in it lead to files of that image, not of this machine. */
export class Base {
  readonly #folder: string;

  constructor(folder: string) {
    this.#folder = folder;
  }

  /** A file's content; undefined when there is none. */
  read(path: string): Buffer | undefined {
    const found = this.#resolve(path);
    return found === undefined ? undefined : readFileSync(join(this.#folder, found));
  }

  /** The first of some paths at which there is something. */
  first(paths: readonly string[]): string | undefined {
    return paths.find((path) => this.#resolve(path) !== undefined);
  }

  /**
   * What a program needs to run: itself, its loader, and its libraries with all that they need, where the loader looks for
   * them. @throws Error when something is missing
   */
  filesOf(program: string): ReadonlySet<string> {
    const found = new Set<string>();
    const folders = [
      ...['/lib', '/usr/lib'].flatMap((folder) => [...this.#architectures(folder), `${folder}64`, folder]),
      '/usr/local/lib',
    ];
    const add = (path: string) => {
      if (found.has(path)) {
        return;
      }
      found.add(path);
      const { loader, libraries } = needsOf(this.read(path) ?? missing(path));
      if (loader !== undefined) {
        add(loader);
      }
      for (const name of libraries) {
        // The loader is a library, too, and in a place that the program names.
        const known = [...found].find((one) => one.endsWith(`/${name}`));
        add(known ?? this.first(folders.map((folder) => `${folder}/${name}`)) ?? missing(name));
      }
    };
    add(program);
    return found;
  }

  /**
   * The packages of Debian that own some files, with what `dpkg` knows of them and their licences; none when the image is
   * not made of packages.
   */
  packagesOf(paths: Iterable<string>): readonly DebianPackage[] {
    const database = '/var/lib/dpkg';
    const wanted = new Set([...paths].flatMap((path) => [path, path.replace(/^\/usr(?=\/lib)/, ''), `/usr${path}`]));
    const stanzas = this.read(`${database}/status`)?.toString().split(/\n\n+/) ?? [];
    return globSync('*.list', { cwd: join(this.#folder, database, 'info') })
      .filter((list) =>
        readFileSync(join(this.#folder, database, 'info', list), 'utf8')
          .split('\n')
          .some((path) => wanted.has(path)),
      )
      .map((list) => list.slice(0, -'.list'.length).split(':', 1)[0] ?? '')
      .sort()
      .map((name) => ({
        name,
        status:
          stanzas.find((stanza) => stanza.startsWith(`Package: ${name}\n`)) ?? missing(`${database}/status: ${name}`),
        copyright: this.read(`/usr/share/doc/${name}/copyright`) ?? missing(`the licence of ${name}`),
      }));
  }

  #architectures(folder: string): string[] {
    const real = this.#resolve(folder);
    return real === undefined
      ? []
      : globSync('*-linux-*', { cwd: join(this.#folder, real) })
          .sort()
          .map((name) => `${folder}/${name}`);
  }

  /** A path with every link followed; undefined when there is nothing. */
  #resolve(path: string): string | undefined {
    let done = '';
    let links = 0;
    const left = path.split('/');
    for (let part = left.shift(); part !== undefined; part = left.shift()) {
      if (part === '..') {
        done = done.slice(0, Math.max(0, done.lastIndexOf('/')));
      } else if (part !== '' && part !== '.') {
        const next = join(this.#folder, done, part);
        if (lstatSync(next, { throwIfNoEntry: false })?.isSymbolicLink()) {
          links += 1;
          if (links > 40) {
            throw new Error(`${path} leads in circles`);
          }
          const target = readlinkSync(next);
          left.unshift(...target.split('/'));
          done = target.startsWith('/') ? '' : done;
        } else {
          done = `${done}/${part}`;
        }
      }
    }
    return existsSync(join(this.#folder, done)) ? done : undefined;
  }
}

/** A package that the image has something of. */
export interface DebianPackage {
  readonly name: string;
  /** As in `/var/lib/dpkg/status`. */
  readonly status: string;
  readonly copyright: Buffer;
}

function missing(what: string): never {
  throw new Error(`the base image has no ${what}`);
}
