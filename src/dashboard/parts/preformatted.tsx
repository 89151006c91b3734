/** Text as it is; it is scrolled by the keys, too, where it is long. */
export function Preformatted({ label, text }: { readonly label: string; readonly text: string }) {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: it is scrolled
    <section class="preformatted" tabIndex={0} aria-label={label}>
      <pre>{text}</pre>
    </section>
  )
}
