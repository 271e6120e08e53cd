/* `npm run reference`: writes the pages of docs/reference from the code. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { referenceFolder, referencePages } from './pages.ts';

mkdirSync(referenceFolder, { recursive: true });
for (const [name, text] of Object.entries(referencePages())) {
  writeFileSync(join(referenceFolder, name), text);
}
