// Vite gives the address of what is imported so.
declare module '*.svg' {
  const address: string
  // biome-ignore lint/style/noDefaultExport: it is how Vite gives it
  export default address
}
declare module '*.css'
