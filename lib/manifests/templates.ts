import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import handlebars from 'handlebars';
import { parseAllDocuments } from 'yaml';
import type { KubeObject } from '../kube/index.ts';

/** The nearest folder `templates` above the given one. It exists in the source tree and in the image. */
function templatesAbove(folder: string): string {
  const found = join(folder, 'templates');
  const parent = dirname(folder);
  return existsSync(found) || parent === folder ? found : templatesAbove(parent);
}

/** The text of a helper's argument, which the engine does not check. @throws TypeError when the context lacks it */
function textOf(value: unknown): string {
  if (value === undefined) {
    throw new TypeError('a value of the template is not defined');
  }
  return String(value);
}

const flavours = ['argocd', 'operator', 'agent', 'work-agent', 'cleanup'] as const;

/** A folder of templates. */
export type Flavour = (typeof flavours)[number];

type Template = (context: object) => string;

/** Number of parsed objects that are kept. The least recently used ones are dropped: objects of all clusters stay. */
const cacheSize = 128;

/** Renders folders of templates to objects, in the order of the file names. Templates are read and compiled once. */
export class Templates {
  readonly #flavours = new Map<Flavour, { file: string; source: string; template: Template }[]>();
  readonly #texts = new Map<string, string>();
  readonly #parsed = new Map<string, readonly KubeObject[]>();
  readonly #engine = handlebars.create();

  /** @param path the templates folder; default: the program's own */
  constructor(path = templatesAbove(import.meta.dirname)) {
    this.#engine.registerHelper('q', (value: unknown) => JSON.stringify(textOf(value)));
    this.#engine.registerHelper('base64', (value: unknown) => Buffer.from(textOf(value)).toString('base64'));
    for (const file of readdirSync(join(path, 'partials'))) {
      this.#engine.registerPartial(file.replace(/\.hbs$/, ''), readFileSync(join(path, 'partials', file), 'utf8'));
    }
    for (const flavour of flavours) {
      const files = readdirSync(join(path, flavour)).sort();
      this.#flavours.set(
        flavour,
        files
          .filter((file) => file.endsWith('.yaml.hbs'))
          .map((file) => {
            const source = readFileSync(join(path, flavour, file), 'utf8');
            const template = this.#engine.compile(source, { noEscape: true, strict: true });
            return { file: `${flavour}/${file}`, source, template };
          }),
      );
      for (const file of files.filter((name) => !name.endsWith('.hbs'))) {
        this.#texts.set(`${flavour}/${file}`, readFileSync(join(path, flavour, file), 'utf8'));
      }
    }
  }

  /**
   * The text of a file that is not a template.
   * @throws TypeError when there is no such file
   */
  text(file: string): string {
    const text = this.#texts.get(file);
    if (text === undefined) {
      throw new TypeError(`there is no template file ${file}`);
    }
    return text;
  }

  /** The templates of a folder as they are written. */
  sources(flavour: Flavour): string[] {
    return (this.#flavours.get(flavour) ?? []).map(({ source }) => source);
  }

  /**
   * Renders a folder. The objects are shared between calls: do not change them.
   * @param only the files to render; default: all
   * @throws Error when the context lacks a value, so that no incomplete manifest is rendered
   */
  render(flavour: Flavour, context: object, only?: readonly string[]): KubeObject[] {
    return (this.#flavours.get(flavour) ?? [])
      .filter(({ file }) => only === undefined || only.includes(file))
      .flatMap(({ file, template }) =>
        template(context)
          .split(/^---$/m)
          .flatMap((text) => this.#parse(file, text)),
      );
  }

  /** Parses YAML with a cache: parsing is expensive, and most objects are the same for every cluster. */
  #parse(file: string, text: string): readonly KubeObject[] {
    const known = this.#parsed.get(text);
    if (known) {
      this.#parsed.delete(text);
      this.#parsed.set(text, known);
      return known;
    }
    const objects = parseAllDocuments(text).map((document) => {
      const [error] = document.errors;
      if (error) {
        throw new Error(`template ${file} does not yield YAML: ${error.message}`);
      }
      return document.toJS() as KubeObject;
    });
    if (this.#parsed.size >= cacheSize) {
      this.#parsed.delete(this.#parsed.keys().next().value ?? '');
    }
    this.#parsed.set(text, objects);
    return objects;
  }
}
