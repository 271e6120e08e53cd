import { parse } from 'yaml';
import { z } from 'zod';
import { cell, generated } from './markdown.ts';

interface FieldSchema {
  readonly type?: string | undefined;
  readonly description?: string | undefined;
  readonly default?: unknown;
  readonly enum?: readonly unknown[] | undefined;
  readonly required?: readonly string[] | undefined;
  readonly properties?: Readonly<Record<string, FieldSchema>> | undefined;
  readonly items?: FieldSchema | undefined;
  readonly additionalProperties?: FieldSchema | boolean | undefined;
}

const fieldSchema: z.ZodType<FieldSchema> = z.lazy(() =>
  z.object({
    type: z.string().optional(),
    description: z.string().optional(),
    default: z.unknown().optional(),
    enum: z.array(z.unknown()).optional(),
    required: z.array(z.string()).optional(),
    properties: z.record(z.string(), fieldSchema).optional(),
    items: fieldSchema.optional(),
    additionalProperties: z.union([fieldSchema, z.boolean()]).optional(),
  }),
);

const definition = z.object({
  spec: z.object({
    group: z.string(),
    names: z.object({ kind: z.string(), plural: z.string(), shortNames: z.array(z.string()).default([]) }),
    versions: z.array(z.object({ name: z.string(), schema: z.object({ openAPIV3Schema: fieldSchema }) })),
  }),
});

/**
 * The page of a CustomResourceDefinition: every field with its type, default and meaning, in Markdown.
 * @param yaml the definition, in the form that Kubernetes takes
 */
export function customResourcePage(yaml: string): string {
  const { group, names, versions } = definition.parse(parse(yaml)).spec;
  const [version] = versions;
  if (version === undefined) {
    throw new Error(`${names.kind} has no version`);
  }
  const { openAPIV3Schema: schema } = version.schema;
  return [
    `# ${names.kind}`,
    '',
    generated,
    '',
    schema.description ?? '',
    '',
    `\`apiVersion: ${group}/${version.name}\`, \`kind: ${names.kind}\`; \`kubectl get ${names.plural}\`${
      names.shortNames.length > 0 ? `, in short ${names.shortNames.map((name) => `\`${name}\``).join(', ')}` : ''
    }.`,
    '',
    ...['spec', 'status'].flatMap((name) => part(name, schema.properties?.[name])),
  ].join('\n');
}

function part(name: string, schema: FieldSchema | undefined): string[] {
  return schema === undefined
    ? []
    : [`## ${name}`, '', '| Field | Type | Default | |', '|---|---|---|---|', ...rows('', schema), ''];
}

function* rows(path: string, schema: FieldSchema): Generator<string> {
  for (const [name, field] of Object.entries(schema.properties ?? {})) {
    const own = path === '' ? name : `${path}.${name}`;
    const isRequired = schema.required?.includes(name) === true;
    const choices = (field.enum ?? []).map((value) => `\`${String(value) || '""'}\``).join(', ');
    const text = [
      isRequired ? 'Required.' : '',
      field.description ?? '',
      choices === '' ? '' : `One of ${choices}.`,
    ].filter((one) => one !== '');
    const initial = field.default === undefined ? '' : `\`${JSON.stringify(field.default)}\``;
    yield `| \`${own}\` | ${typeOf(field)} | ${cell(initial)} | ${cell(text.join(' '))} |`;
    yield* rows(own, field);
    yield* rows(`${own}[]`, field.items ?? {});
    const values = field.additionalProperties;
    yield* rows(`${own}.*`, typeof values === 'object' ? values : {});
  }
}

function typeOf({ type = 'any', items, additionalProperties }: FieldSchema): string {
  if (type === 'array') {
    return `list of ${items?.type ?? 'any'}`;
  }
  return typeof additionalProperties === 'object' ? `map of ${additionalProperties.type ?? 'any'}` : type;
}
