import { Copy } from './copy.tsx'
import { Preformatted } from './preformatted.tsx'

/** A secret that is shown once, so the reader has to save it. */
export function Secret({ label, value }: { readonly label: string; readonly value: string }) {
  return (
    <div class="note good" role="status">
      <p>
        <strong>{label}</strong> Copy it now: it is not shown again.
      </p>
      <Preformatted label="Secret value" text={value} />
      <Copy text={value} />
    </div>
  )
}
