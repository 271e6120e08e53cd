/** What an executable or a library needs to be loaded. */
export interface Needs {
  /** The loader that the kernel starts an executable with; libraries name none. */
  readonly loader?: string;
  /** The file names of its libraries. */
  readonly libraries: readonly string[];
}

const kinds = { load: 1, dynamic: 2, interpreter: 3 };
const tags = { end: 0, needed: 1, strings: 5 };

/** What an ELF file of 64 bits needs, of whatever architecture. @throws Error when it is not one */
export function needsOf(file: Buffer): Needs {
  if (file.toString('latin1', 0, 5) !== '\x7fELF\x02') {
    throw new Error('not an ELF file of 64 bits');
  }
  const view = new DataView(file.buffer, file.byteOffset, file.byteLength);
  const little = file[5] === 1;
  const word = (at: number) => Number(view.getBigUint64(at, little));
  const size = view.getUint16(0x36, little);
  const segments = Array.from({ length: view.getUint16(0x38, little) }, (_, index) => {
    const at = word(0x20) + index * size;
    return { kind: view.getUint32(at, little), offset: word(at + 8), address: word(at + 16), length: word(at + 32) };
  });
  const text = (at: number) => file.toString('utf8', at, file.indexOf(0, at));
  const dynamic = segments.find(({ kind }) => kind === kinds.dynamic);
  const entries: [tag: number, value: number][] = [];
  for (let at = dynamic?.offset ?? 0; dynamic && at < dynamic.offset + dynamic.length; at += 16) {
    entries.push([word(at), word(at + 8)]);
  }
  const used = entries.slice(
    0,
    entries.findIndex(([tag]) => tag === tags.end),
  );
  const [, address = 0] = used.find(([tag]) => tag === tags.strings) ?? [];
  const home = segments.find((one) => one.kind === kinds.load && isIn(address, one));
  const strings = address - (home?.address ?? 0) + (home?.offset ?? 0);
  const interpreter = segments.find(({ kind }) => kind === kinds.interpreter);
  return {
    ...(interpreter && { loader: text(interpreter.offset) }),
    libraries: used.filter(([tag]) => tag === tags.needed).map(([, name]) => text(strings + name)),
  };
}

const isIn = (at: number, { address, length }: { address: number; length: number }) =>
  at >= address && at < address + length;
