/** The part of an OpenAPI schema that says which fields there are. */
export interface FieldSchema {
  readonly properties?: Readonly<Record<string, FieldSchema>>;
  readonly items?: FieldSchema;
  readonly additionalProperties?: FieldSchema | boolean;
  readonly 'x-kubernetes-preserve-unknown-fields'?: boolean;
}

/** The paths of all fields in a schema: `spec.list[].name`, `spec.map{}`. */
export function schemaFields(schema: FieldSchema, path = ''): string[] {
  const { properties, items, additionalProperties } = schema;
  const below = properties
    ? Object.entries(properties).flatMap(([name, field]) => schemaFields(field, path === '' ? name : `${path}.${name}`))
    : items
      ? schemaFields(items, `${path}[]`)
      : typeof additionalProperties === 'object'
        ? schemaFields(additionalProperties, `${path}{}`)
        : [];
  return below.length > 0 ? below : [path];
}

/** The paths, as {@link schemaFields} has them, of the schema's fields that a value has. */
export function fieldsIn(value: unknown, schema: FieldSchema, path = ''): string[] {
  const { properties, items, additionalProperties } = schema;
  if (properties) {
    return Object.entries(value as object).flatMap(([name, field]) =>
      properties[name] ? fieldsIn(field, properties[name], path === '' ? name : `${path}.${name}`) : [],
    );
  }
  if (items) {
    return (value as unknown[]).flatMap((item) => fieldsIn(item, items, `${path}[]`));
  }
  if (typeof additionalProperties === 'object') {
    return Object.values(value as object).flatMap((field) => fieldsIn(field, additionalProperties, `${path}{}`));
  }
  return [path];
}

/** A value without the fields that a schema does not have, as an API server stores it. */
export function pruned<T>(value: T, schema: FieldSchema): T {
  const { properties, items, additionalProperties } = schema;
  if (Array.isArray(value)) {
    return (items ? value.map((item) => pruned(item, items)) : value) as T;
  }
  if (typeof value !== 'object' || value === null) {
    return value;
  }
  const all = schema['x-kubernetes-preserve-unknown-fields'];
  const entries = Object.entries(value).flatMap(([name, field]) => {
    const known = properties?.[name] ?? (typeof additionalProperties === 'object' ? additionalProperties : undefined);
    return known ? [[name, pruned(field, known)]] : all || additionalProperties === true ? [[name, field]] : [];
  });
  return Object.fromEntries(entries) as T;
}
