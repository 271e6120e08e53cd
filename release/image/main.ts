/* Run by the Dockerfile: `node release/image/main.ts BASE DIST ROOT`. */
import { layOutRoot } from './root.ts';

const [base = '', dist = '', root = ''] = process.argv.slice(2);
layOutRoot({ base, dist, root });
