import { useState } from 'preact/hooks'
import { useLocation } from 'preact-iso'
import type { DetectionRequest } from '../../api/operations.ts'
import { Field } from '../../parts/field.tsx'
import { Page } from '../../parts/page.tsx'
import { Found, Words } from '../signatures/fingerprint-facts.tsx'
import { Capture } from './capture.tsx'
import { Detection } from './detection.tsx'
import { type Pasted, readPasted, typeOf } from './pasted.ts'

/** Identifies the client behind pasted text. */
export function Explore() {
  const { query, route } = useLocation()
  const given = query['fingerprint'] ?? ''
  // A fingerprint may be in the address; headers are private.
  const [pasted, setPasted] = useState<Pasted>(() => readPasted(typeOf(given) === null ? '' : given))
  const look = (text: string) => {
    const found = readPasted(text)
    setPasted(found)
    const address =
      found.kind === 'fingerprint' ? `?fingerprint=${encodeURIComponent(found.fingerprint)}` : ''
    route(`/dashboard/explore${address}`, true)
  }
  return (
    <Page
      title="Explore"
      help="verdicts"
      about="Identify a client. Paste a fingerprint, request headers, curl -v output, or a User-Agent."
    >
      <form
        class="card"
        aria-label="Search"
        onSubmit={(event) => {
          event.preventDefault()
          look(String(new FormData(event.currentTarget).get('text') ?? ''))
        }}
      >
        <Field
          label="Fingerprint, headers, curl -v output, or User-Agent"
          error={pasted.kind === 'unknown' ? `Cannot read this input: ${pasted.why}.` : null}
          hint="Values of cookies, keys and tokens are removed before anything is sent."
        >
          {(tied) => <textarea {...tied} name="text" rows={8} spellcheck={false} defaultValue={given} />}
        </Field>
        <button type="submit" class="main">
          Search
        </button>
      </form>
      <div aria-live="polite">
        <Answer key={JSON.stringify(pasted)} pasted={pasted} />
      </div>
      <Capture />
    </Page>
  )
}

function Answer({ pasted }: { readonly pasted: Pasted }) {
  if (pasted.kind === 'empty' || pasted.kind === 'unknown') return null
  if (pasted.kind === 'fingerprint') {
    const { type, fingerprint } = pasted
    const asked: DetectionRequest = { [type]: fingerprint }
    return (
      <>
        <section class="card" aria-labelledby="taken">
          <h2 id="taken">Fingerprint: {type.toUpperCase()}</h2>
          <Words type={type} fingerprint={fingerprint} />
        </section>
        <Detection asked={asked} />
        <Found type={type} fingerprint={fingerprint} />
      </>
    )
  }
  return (
    <>
      {pasted.kind === 'request' && (
        <p class="note">
          Read as {pasted.from}.
          {pasted.withheld.length > 0 &&
            ` Values not sent: ${pasted.withheld.join(', ')}. Without them the fingerprint of the request differs.`}
        </p>
      )}
      {pasted.kind === 'user-agent' && <p class="note">Read as a User-Agent.</p>}
      <Detection asked={pasted.request} />
    </>
  )
}
