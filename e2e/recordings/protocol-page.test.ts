import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { decodeEvent } from '../../lib/wire/index.ts';
import { AuthRequest } from '../../proto/gen/authapi/auth.ts';
import { Event } from '../../proto/gen/eventstreamapi/eventstream.ts';
import { recordedLines } from './index.ts';

const root = join(import.meta.dirname, '../..');
const page = readFileSync(join(root, 'docs/protocol.md'), 'utf8');
const examples = [...page.matchAll(/^```base64 (\S+) (\d+)\n(.*?)\n```\n\n```json\n(.*?)\n```$/gms)].map(
  ([, recording = '', seq = '', bytes = '', json = '']) => ({
    recording,
    seq: Number(seq),
    bytes: bytes.replaceAll('\n', ''),
    shown: JSON.parse(json) as Decoded,
  }),
);

interface Decoded {
  readonly type?: string;
  readonly source?: string;
  readonly attributes?: Readonly<Record<string, string | { readonly ce_uri: string }>>;
  readonly dataJson?: unknown;
  readonly method?: string;
  readonly mode?: string;
}

test('every example of docs/protocol.md has its bytes and what they mean', () => {
  expect(examples.length).toBeGreaterThan(8);
  expect(page.match(/^```base64/gm)).toHaveLength(examples.length);
});

test.each(examples)(
  'docs/protocol.md, $recording $seq: the recorded bytes, which we read as the page says',
  (example) => {
    const line = recordedLines(example.recording).find(({ seq }) => seq === example.seq);
    expect(example.bytes).toBe(line?.bytes);
    expect(example.shown).toEqual(line?.decoded);
    const bytes = Buffer.from(example.bytes, 'base64');
    if (line?.rpc === '/authapi.Authentication/Authenticate') {
      expect(AuthRequest.decode(bytes)).toMatchObject({ method: example.shown.method, mode: example.shown.mode });
    } else if (line?.rpc === '/eventstreamapi.EventStream/Subscribe') {
      const event = decodeEvent(Event.decode(bytes).event);
      const { type, source, attributes = {}, dataJson } = example.shown;
      const { dataschema, datacontenttype: _, subject: __, ...extensions } = attributes;
      expect({ type: event.type, source: event.source, extensions: event.extensions }).toEqual({
        type,
        source,
        extensions,
      });
      expect(event.target).toBe(typeof dataschema === 'object' && dataschema.ce_uri);
      expect(event.data.length === 0 ? undefined : JSON.parse(Buffer.from(event.data).toString())).toEqual(dataJson);
    }
  },
);

test('docs/protocol.md names tests that exist', () => {
  const files = globSync('{agent,controller,e2e,lib,principal}/**/*.test.ts', { cwd: root });
  const tests = files.map((file) => readFileSync(join(root, file), 'utf8')).join('\n');
  const named = [...page.matchAll(/✓ ((?:`[^`]+`,?\s*)+)/g)].flatMap(([, list = '']) =>
    [...list.matchAll(/`([^`]+)`/g)].map(([, name = '']) => name.replaceAll(/\s+/g, ' ')),
  );
  expect(named.length).toBeGreaterThan(20);
  expect(named.filter((name) => !tests.includes(name) && !files.includes(name))).toEqual([]);
});
