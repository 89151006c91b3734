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
      about="Whose is this? Paste a fingerprint, the headers of a request, what curl -v has printed, or a User-Agent."
    >
      <form
        class="card"
        aria-label="What is to be looked at"
        onSubmit={(event) => {
          event.preventDefault()
          look(String(new FormData(event.currentTarget).get('text') ?? ''))
        }}
      >
        <Field
          label="Fingerprint, headers, curl -v, or a User-Agent"
          error={pasted.kind === 'unknown' ? `That is nothing that is known here: ${pasted.why}.` : null}
          hint="Values of cookies, keys and tokens are left out before anything is sent."
        >
          {(tied) => <textarea {...tied} name="text" rows={8} spellcheck={false} defaultValue={given} />}
        </Field>
        <button type="submit" class="main">
          Look
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
          <h2 id="taken">A fingerprint: {type.toUpperCase()}</h2>
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
          Taken as {pasted.from}.
          {pasted.withheld.length > 0 &&
            ` Not sent: the values of ${pasted.withheld.join(', ')}; the fingerprint of the request is another one without them.`}
        </p>
      )}
      {pasted.kind === 'user-agent' && <p class="note">Taken as a User-Agent.</p>}
      <Detection asked={pasted.request} />
    </>
  )
}
