import { counted } from '../../parts/format.ts'
import { diffOf, shortened } from './diff.ts'

/** Two policies, line by line. Signs repeat the meaning of the colours. */
export function Difference({ before, after }: { readonly before: string; readonly after: string }) {
  const lines = diffOf(before.trimEnd(), after.trimEnd())
  const count = (kind: string) => lines.filter((line) => line.kind === kind).length
  if (count('same') === lines.length) return <p>No differences.</p>
  return (
    <>
      <p>
        {counted(count('added'), 'line')} added, {counted(count('removed'), 'line')} removed.
      </p>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: it is scrolled by the keys */}
      <section class="preformatted" tabIndex={0} aria-label="Differences">
        <pre class="diff">
          {shortened(lines).map((line, at) =>
            line === null ? (
              <span key={`${at}`} class="soft">
                {'  …\n'}
              </span>
            ) : (
              <span key={`${at}`} class={line.kind}>
                {`${SIGNS[line.kind]} ${line.text}\n`}
              </span>
            ),
          )}
        </pre>
      </section>
    </>
  )
}

const SIGNS = { same: ' ', added: '+', removed: '-' } as const
