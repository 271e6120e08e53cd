/*
 * `npm run pictures`: pictures of the fleet page as a browser shows it, of fleets of several sizes, light and dark, on a
 * desktop and on a phone. With `--docs` those of the documentation. Needs Debian's Chromium.
 */
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { allMotifs, documentedMotifs, takePictures } from './take.ts';

const { values } = parseArgs({
  options: {
    docs: { type: 'boolean', default: false },
    output: { type: 'string' },
    sizes: { type: 'string', default: '3,50,500' },
  },
});
const folder = values.output ?? (values.docs ? 'docs/pictures' : 'dist/pictures');
await mkdir(folder, { recursive: true });
const motifs = values.docs ? documentedMotifs : allMotifs(values.sizes.split(',').map(Number));
for await (const { name, bytes, troubles } of takePictures(motifs, (file) => join(folder, file))) {
  console.log(`${join(folder, name)}  ${Math.ceil(bytes / 1024)} KiB`);
  for (const trouble of troubles) {
    console.error(`${name}: ${trouble}`);
    process.exitCode = 1;
  }
}
