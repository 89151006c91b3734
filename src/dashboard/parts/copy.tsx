import { useState } from 'preact/hooks'

/** A button that copies a text. Missing where the browser does not allow it: without TLS. */
export function Copy({ text }: { readonly text: string }) {
  const [isCopied, setCopied] = useState(false)
  if (!window.isSecureContext) return null
  const copy = () =>
    navigator.clipboard.writeText(text).then(
      () => setCopied(true),
      () => setCopied(false),
    )
  return (
    <button type="button" onClick={() => void copy()}>
      {isCopied ? 'Copied' : 'Copy'}
    </button>
  )
}
