// Lets the search work in pages that are opened as files. Browsers refuse to start workers there, so the script of the
// worker runs in a hidden frame instead. As with a worker, messages are copied and arrive later.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super()
      this.onmessage = null
      this.frame = document.createElement("iframe")
      this.frame.hidden = true
      document.body.appendChild(this.frame)
      const inside = this.frame.contentWindow
      const script = inside.document.createElement("script")
      this.loaded = new Promise(resolve => { script.onload = resolve })
      inside.postMessage = data => {
        const event = new MessageEvent("message", { data: structuredClone(data) })
        setTimeout(() => {
          this.dispatchEvent(event)
          if (this.onmessage) this.onmessage(event)
        })
      }
      script.src = url
      inside.document.body.appendChild(script)
    }
    postMessage(data) {
      const inside = this.frame.contentWindow
      const event = new inside.MessageEvent("message", { data: inside.structuredClone(data) })
      this.loaded.then(() => setTimeout(() => inside.dispatchEvent(event)))
    }
    terminate() {
      this.frame.remove()
    }
  }
}
