import { useState } from 'preact/hooks'
import { useLocation } from 'preact-iso'
import type { Signature } from '../../api/operations.ts'
import { useAsked } from '../../api/use-asked.ts'
import { Badge } from '../../parts/badge.tsx'
import { whole } from '../../parts/format.ts'
import { Page } from '../../parts/page.tsx'
import { Answered, Empty } from '../../parts/states.tsx'
import { useCanvas } from '../../parts/plots/use-canvas.ts'
import { ja4Place } from './ja4-words.ts'
import { SignatureTabs } from './signature-tabs.tsx'
import { hrefOf } from './signatures.tsx'
import { Table } from '../../parts/table.tsx'

/** A map of TLS stacks by what they offer: similar stacks are near each other. */
export function StackMap() {
  const used = useAsked('listSignatures', { query: { type: 'ja4', sort: '-observations', limit: SHOWN_MAX } })
  return (
    <Page
      title="Map of TLS stacks"
      help="verdicts"
      about="JA4 fingerprints by their number of cipher suites and extensions. Browsers, libraries and agents form separate groups."
    >
      <SignatureTabs current="map" />
      <Answered used={used}>
        {({ signatures, total }) => {
          const placed = signatures.flatMap((signature) => {
            const place = ja4Place(signature.fingerprint)
            return place === null ? [] : [{ signature, ...place }]
          })
          if (placed.length === 0) return <Empty title="No known JA4 fingerprints" />
          return (
            <>
              <Picture placed={placed} />
              <p class="soft">
                {whole(placed.length)} of {whole(total)} fingerprints, those with the most observations.
              </p>
              <Listed placed={placed} />
            </>
          )
        }}
      </Answered>
    </Page>
  )
}

interface Placed {
  readonly signature: Signature
  readonly ciphers: number
  readonly extensions: number
}

function Picture({ placed }: { readonly placed: readonly Placed[] }) {
  const { route } = useLocation()
  const [pointed, setPointed] = useState<Placed | null>(null)
  // Draw large dots first, below small ones.
  const drawn = [...placed].sort((one, other) => sizeOf(other.signature) - sizeOf(one.signature))
  const { place } = useCanvas(
    JSON.stringify(drawn.map(({ signature }) => signature.fingerprint)),
    ({ makeDots }, element) =>
      makeDots(
        {
          ...{ x: 'cipher suites', y: 'extensions' },
          dots: drawn.map(({ signature, ciphers, extensions }) => ({
            ...{ x: ciphers, y: extensions, size: sizeOf(signature), colour: colourOf(signature) },
          })),
          pointed: (index) => setPointed(index === null ? null : drawn[index]!),
        },
        element,
      ),
  )
  return (
    <figure class="plot card">
      <figcaption>
        <ul class="legend">
          {KINDS.map(({ kind, label, colour }) => (
            <li key={kind}>
              <span class="swatch" style={{ background: `var(--${colour})` }} /> {label}
            </li>
          ))}
        </ul>
      </figcaption>
      {/* biome-ignore lint/a11y/useKeyWithClickEvents: the list below has the same links */}
      <div
        class="canvas tall"
        role="img"
        aria-label="The fingerprints of the list below, by cipher suites and extensions"
        ref={place}
        style={{ cursor: pointed === null ? '' : 'pointer' }}
        onClick={() => pointed !== null && route(hrefOf(pointed.signature))}
      />
      <p aria-hidden="true" class="mono">
        {pointed === null
          ? 'Point at a dot for details.'
          : `${pointed.signature.agent_name ?? 'unknown'}: ${pointed.signature.fingerprint}, ${pointed.ciphers} cipher suites, ${pointed.extensions} extensions`}
      </p>
    </figure>
  )
}

function Listed({ placed }: { readonly placed: readonly Placed[] }) {
  return (
    <div class="card">
      <Table
        label="TLS stacks"
        rows={placed}
        keyOf={({ signature }) => `${signature.fingerprint} ${signature.agent_id}`}
        columns={[
          {
            title: 'Fingerprint',
            cell: ({ signature }) => (
              <a href={hrefOf(signature)}>
                <code>{signature.fingerprint}</code>
              </a>
            ),
          },
          { title: 'Software', cell: ({ signature }) => signature.agent_name ?? <Badge of="unknown" /> },
          { title: 'Cipher suites', isNumber: true, isExtra: true, cell: ({ ciphers }) => ciphers },
          { title: 'Extensions', isNumber: true, isExtra: true, cell: ({ extensions }) => extensions },
        ]}
      />
    </div>
  )
}

/** Logarithmic: twice the count gives a slightly larger dot. */
function sizeOf({ observations, requests_seen }: Signature): number {
  return 3 + Math.log2(1 + observations + requests_seen)
}

function colourOf({ kind }: Signature): string {
  return (KINDS.find((each) => each.kind === kind) ?? UNKNOWN).colour
}

const UNKNOWN = { kind: 'unknown', label: 'Unknown', colour: 'unknown' }
const KINDS = [
  { kind: 'browser', label: 'Browsers', colour: 'human' },
  { kind: 'agent', label: 'Agents', colour: 'agent' },
  { kind: 'tool', label: 'Tools and libraries', colour: 'automation' },
  UNKNOWN,
]
const SHOWN_MAX = 200
