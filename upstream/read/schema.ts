import { parseAllDocuments } from 'yaml';
import { CheckoutError } from '../error.ts';
import type { Fact, FactKind } from '../facts.ts';

/** The parts of a JSON schema, of chart values or of a CRD, that say which fields there are. */
export interface FieldTree {
  readonly type?: unknown;
  readonly properties?: Readonly<Record<string, FieldTree>>;
  readonly items?: FieldTree;
  readonly additionalProperties?: FieldTree | boolean;
  readonly 'x-kubernetes-preserve-unknown-fields'?: boolean;
  readonly $ref?: string;
  readonly definitions?: Readonly<Record<string, FieldTree>>;
}

const maxDepth = 64;
const maxFields = 200_000;

/**
 * Every field of a schema, with its path: `spec.list[].name`, `spec.map{}.name`.
 * @throws CheckoutError for a schema without an end
 */
function* fieldPaths(schema: FieldTree, root: FieldTree = schema, path = '', depth = 0): Generator<string> {
  const { properties = {}, items, additionalProperties } = resolved(schema, root);
  if (depth > maxDepth) {
    throw new CheckoutError(`a schema is too deep at ${path.slice(0, 200)}`);
  }
  for (const [name, field] of Object.entries(properties)) {
    const own = path === '' ? name : `${path}.${name}`;
    yield own;
    yield* fieldPaths(field, root, own, depth + 1);
  }
  if (isObject(items)) {
    yield* fieldPaths(items, root, `${path}[]`, depth + 1);
  }
  if (isObject(additionalProperties)) {
    yield* fieldPaths(additionalProperties, root, `${path}{}`, depth + 1);
  }
}

const isObject = (value: unknown): value is FieldTree =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

function resolved(schema: FieldTree, root: FieldTree): FieldTree {
  const name = /^#\/definitions\/(\w+)$/.exec(schema.$ref ?? '')?.[1];
  return (name === undefined ? undefined : root.definitions?.[name]) ?? schema;
}

/**
 * Whether a schema has a field, or takes whatever stands there.
 * @param isOpen whether an object takes fields that its schema does not name
 */
function admits(root: FieldTree, path: string, isOpen: (schema: FieldTree) => boolean): boolean {
  let schema = resolved(root, root);
  for (const part of path.split('.')) {
    const [, name = '', below = ''] = /^(.*?)((?:\[\]|\{\})*)$/.exec(part) ?? [];
    const field = schema.properties?.[name];
    if (field === undefined) {
      return isOpen(schema);
    }
    schema = resolved(field, root);
    for (const step of below.match(/\[\]|\{\}/g) ?? []) {
      const next = step === '[]' ? schema.items : schema.additionalProperties;
      if (!isObject(next)) {
        return isOpen(schema);
      }
      schema = resolved(next, root);
    }
  }
  return true;
}

const takesValues = ({ type, additionalProperties }: FieldTree) =>
  additionalProperties !== false && [undefined, 'object', 'array'].includes(type as string | undefined);
const takesFields = (schema: FieldTree) =>
  schema['x-kubernetes-preserve-unknown-fields'] === true || (schema.additionalProperties ?? false) !== false;

/** @throws CheckoutError for more fields than any of the projects has */
function factsOf(kind: FactKind, file: string, prefix: string, schema: FieldTree): Fact[] {
  const facts: Fact[] = [];
  for (const path of fieldPaths(schema)) {
    if (facts.push({ kind, name: `${prefix} ${path}`, file, within: `${prefix}${parentOf(path)}` }) > maxFields) {
      throw new CheckoutError(`${file} has more than ${maxFields} fields`);
    }
  }
  return facts;
}

const parentOf = (path: string) => (path.includes('.') ? ` ${path.replace(/(?:\[\]|\{\})*\.[^.]*$/, '')}` : '');

/** The values of a chart, as `CHART path`, from its schema, or from its `values.yaml` where it has none. */
export function readValues(chart: string, file: string, text: string): Fact[] {
  const schema = file.endsWith('.json') ? jsonIn(file, text) : schemaOfValues(yamlIn(file, text)[0]);
  return factsOf('values', file, chart, schema);
}

/** Whether a chart takes a value that another one has, by both names and the schema of ours. */
export function hasValue(schema: FieldTree, chart: string, name: string): boolean {
  return admits(schema, name.slice(chart.length + 1), takesValues);
}

function schemaOfValues(values: unknown): FieldTree {
  return isObject(values)
    ? { properties: Object.fromEntries(Object.entries(values).map(([name, value]) => [name, schemaOfValues(value)])) }
    : {};
}

interface Definition {
  readonly kind?: string;
  readonly metadata?: { readonly name?: string };
  readonly spec?: {
    readonly versions?: readonly {
      readonly name: string;
      readonly schema?: { readonly openAPIV3Schema?: FieldTree };
    }[];
  };
}

/** The schemas of the CRDs in YAML files, by `PLURAL.GROUP VERSION`, with the file. */
export function crdSchemas(
  files: ReadonlyMap<string, string>,
): ReadonlyMap<string, { readonly file: string; readonly schema: FieldTree }> {
  const found = Array.from(files).flatMap(([file, text]) =>
    (yamlIn(file, text) as (Definition | null)[])
      .filter((definition) => definition?.kind === 'CustomResourceDefinition')
      .flatMap((definition) =>
        (definition?.spec?.versions ?? []).map(
          ({ name, schema }) =>
            [`${definition?.metadata?.name} ${name}`, { file, schema: schema?.openAPIV3Schema ?? {} }] as const,
        ),
      ),
  );
  return new Map(found);
}

/** Versions of CRDs as `PLURAL.GROUP VERSION`, and their fields as `PLURAL.GROUP VERSION path`. */
export function readCrdFields(files: ReadonlyMap<string, string>): Fact[] {
  return Array.from(crdSchemas(files)).flatMap(([name, { file, schema }]) => [
    { kind: 'fields', name, file },
    ...factsOf('fields', file, name, schema),
  ]);
}

/** Whether CRDs have a version, or a field of it, or keep whatever stands there. */
export function hasField(crds: ReturnType<typeof crdSchemas>, name: string): boolean {
  const [plural, version, path] = name.split(' ');
  const crd = crds.get(`${plural} ${version}`);
  return crd !== undefined && (path === undefined || admits(crd.schema, path, takesFields));
}

function jsonIn(file: string, text: string): FieldTree {
  try {
    return JSON.parse(text) as FieldTree;
  } catch (error) {
    throw new CheckoutError(`${file} is no JSON: ${(error as Error).message}`);
  }
}

function yamlIn(file: string, text: string): unknown[] {
  return parseAllDocuments(text).map((document) => {
    const [error] = document.errors;
    if (error) {
      throw new CheckoutError(`${file} is no YAML: ${error.message.split('\n')[0]}`);
    }
    return document.toJS() as unknown;
  });
}
