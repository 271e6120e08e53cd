import { type PlotRules, plotsOf } from './plots.ts';
import { readPrinted } from './printed.ts';
import { escaped, figure, svgOf } from './svg.ts';

/** One benchmark of a report, with what it has printed. */
export interface ReportedBench extends PlotRules {
  readonly name: string;
  readonly summary: string;
  readonly command: string;
  readonly own: string;
  /** What it printed with the other implementation's programs. */
  readonly other?: string | undefined;
}

/** When and where the figures were taken. */
export interface ReportSetting {
  readonly date: string;
  readonly machine: string;
  /** What the other implementation is, if there is one. */
  readonly other?: string | undefined;
}

/** A report: the page, its Markdown, and the pictures that the Markdown shows, by file name. */
export interface BenchReport {
  readonly html: string;
  readonly markdown: string;
  readonly pictures: ReadonlyMap<string, string>;
}

const legend = 'Blue: this project. Grey: the floor. Orange: the other implementation.';

/** Makes a report of what benches have printed. */
export function reportOf(benches: readonly ReportedBench[], setting: ReportSetting): BenchReport {
  const about = [
    `${setting.date}; ${setting.machine}.`,
    ...(setting.other === undefined ? [] : [`The other implementation: ${setting.other}.`]),
    legend,
  ].join(' ');
  const pictures = new Map<string, string>();
  const parts = benches.map((bench) => {
    const printed = [
      { tone: 'own' as const, text: bench.own },
      ...(bench.other === undefined ? [] : [{ tone: 'other' as const, text: bench.other }]),
    ];
    const all = printed.map(({ tone, text }) => ({ tone, printed: readPrinted(text) }));
    const plots = plotsOf(all, bench).map((plot, index) => {
      const file = `${bench.name}-${index + 1}.svg`;
      const svg = svgOf(plot);
      pictures.set(file, svg);
      return { plot, file, svg };
    });
    return { bench, printed, plots };
  });
  const html = parts.map(
    ({ bench, printed, plots }) => `<h2>${escaped(bench.name)}</h2>
<p>${escaped(bench.summary)}. <code>${escaped(bench.command)}</code></p>
${plots.map(({ svg }) => svg).join('\n')}
${printed
  .map(
    ({ tone, text }) =>
      `<details><summary>${tone === 'own' ? 'Everything that it printed' : 'The same of the other implementation'}</summary><pre>${escaped(text.trim())}</pre></details>`,
  )
  .join('\n')}`,
  );
  const markdown = parts.map(({ bench, plots }) => {
    const shown = plots.map(({ plot, file }) => {
      const rows = plot.bars.map(
        ({ label, value, more }) =>
          `| ${label.replaceAll('|', '\\|')} | ${figure(value)} ${plot.unit} | ${more === undefined ? '' : `${figure(more)} ${plot.unit}`} |`,
      );
      return `![${plot.title}](${file})\n\n| ${plot.title} | | p99 |\n|---|---|---|\n${rows.join('\n')}`;
    });
    return `## ${bench.name}\n\n${bench.summary}. \`${bench.command}\`\n\n${shown.join('\n\n')}`;
  });
  return {
    html: `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Benches</title>
<style>body{font-family:sans-serif;max-width:50rem;margin:2rem auto;padding:0 1rem}svg{max-width:100%;height:auto;display:block;margin:1rem 0}pre{overflow-x:auto}</style></head>
<body><h1>Benches</h1>
<p>${escaped(about)}</p>
${html.join('\n')}
</body></html>
`,
    markdown: `# Benches\n\n${about}\n\n${markdown.join('\n\n')}\n`,
    pictures,
  };
}
