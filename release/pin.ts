import { isMap, isSeq, parseDocument } from 'yaml';
import type { ArchivedFile } from '../lib/base/index.ts';

/** The annotation of a released chart with the digest of its image. Templates read it where values say nothing. */
const digestAnnotation = 'argocd-fleet/image-digest';

/** Lines stay as they are. */
const unfolded = { lineWidth: 0 };

/** The files of a chart, which then runs an image by its digest, unless values say which one. */
export function pinChart(files: readonly ArchivedFile[], digest: string): ArchivedFile[] {
  // Not the Chart.yaml of charts inside.
  return changed(files, /^[^/]+\/Chart\.yaml$/, (text) => {
    const chart = parseDocument(text);
    chart.setIn(['annotations', digestAnnotation], digest);
    return chart.toString(unfolded);
  });
}

/** The files of kustomizations, which then run an image by its digest instead of its tag. */
export function pinKustomizations(files: readonly ArchivedFile[], digest: string): ArchivedFile[] {
  return changed(files, /\/kustomization\.yaml$/, (text) => {
    const kustomization = parseDocument(text);
    const images = kustomization.get('images');
    for (const image of isSeq(images) ? images.items.filter(isMap) : []) {
      image.delete('newTag');
      image.set('digest', digest);
    }
    return kustomization.toString(unfolded);
  });
}

function changed(files: readonly ArchivedFile[], path: RegExp, change: (text: string) => string): ArchivedFile[] {
  return files.map((file) => (path.test(file.path) ? { ...file, content: change(file.content.toString()) } : file));
}
