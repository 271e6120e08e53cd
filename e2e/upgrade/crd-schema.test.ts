import { expect, test } from 'vitest';
import { type FieldSchema, fieldsIn, pruned, schemaFields } from './crd-schema.ts';

const schema: FieldSchema = {
  properties: {
    name: {},
    list: { items: { properties: { a: {}, b: {} } } },
    map: { additionalProperties: { properties: { value: {} } } },
    free: { 'x-kubernetes-preserve-unknown-fields': true, properties: { known: {} } },
    texts: { additionalProperties: true },
  },
};

test('a schema has these fields', () => {
  expect(schemaFields(schema)).toEqual(['name', 'list[].a', 'list[].b', 'map{}.value', 'free.known', 'texts']);
});

test('a value has these of them', () => {
  const value = { list: [{ a: 1 }, { a: 2, other: 3 }], map: { x: { value: 1 } }, other: 1 };
  expect(fieldsIn(value, schema)).toEqual(['list[].a', 'list[].a', 'map{}.value']);
});

test('a value loses the fields that the schema does not have, and no others', () => {
  const kept = { name: 'x', list: [{ a: 1 }], map: { x: { value: 1 } }, free: { known: 1, any: 2 }, texts: { y: 'z' } };
  expect(pruned({ ...kept, list: [{ a: 1, c: 2 }], map: { x: { value: 1, w: 2 } }, other: 1 }, schema)).toEqual(kept);
});
