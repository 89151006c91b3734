import { useState } from 'preact/hooks'
import { Preformatted } from './preformatted.tsx'

/** A secret that is shown once, so the reader has to save it. */
export function Secret({ label, value }: { readonly label: string; readonly value: string }) {
  const [isCopied, setCopied] = useState(false)
  const copy = () =>
    navigator.clipboard.writeText(value).then(
      () => setCopied(true),
      () => setCopied(false),
    )
  return (
    <div class="note good" role="status">
      <p>
        <strong>{label}</strong> Copy it now: it is not shown again.
      </p>
      <Preformatted label="Secret value" text={value} />
      {window.isSecureContext && (
        <button type="button" onClick={() => void copy()}>
          {isCopied ? 'Copied' : 'Copy'}
        </button>
      )}
    </div>
  )
}
