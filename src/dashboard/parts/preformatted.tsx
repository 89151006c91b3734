/** Preformatted text; long text can be scrolled with the keyboard. */
export function Preformatted({ label, text }: { readonly label: string; readonly text: string }) {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: the keyboard scrolls it
    <section class="preformatted" tabIndex={0} aria-label={label}>
      <pre>{text}</pre>
    </section>
  )
}
