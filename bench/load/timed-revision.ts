/** A `targetRevision` that says when it was written, by the machine's clock. */
export const timedRevision = () => `at-${performance.timeOrigin + performance.now()}`;

/** Milliseconds since a {@link timedRevision} was written, by the JSON of the Application that has it; undefined: it has none. */
export function ageOfRevision(data: Uint8Array): number | undefined {
  const [, at] = /"targetRevision":"at-([\d.]+)"/.exec(Buffer.from(data).toString('utf8')) ?? [];
  return at === undefined ? undefined : performance.timeOrigin + performance.now() - Number(at);
}
