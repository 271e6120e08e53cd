import { sleep } from '../../lib/base/index.ts';

/** The text of a program's metrics as of now. A program keeps its text for a second; a new one has other values of the process itself. */
export async function metricsNow(port: number): Promise<string> {
  const read = async () => (await fetch(`http://127.0.0.1:${port}/metrics`)).text();
  const kept = await read();
  let text = await read();
  while (text === kept) {
    await sleep(50);
    text = await read();
  }
  return text;
}
