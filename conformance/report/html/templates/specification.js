// Search the specification.
(() => {
  const words = document.getElementById("words"), kernel = document.getElementById("kernel");
  const count = document.getElementById("count"), all = count.textContent;
  const articles = [...document.querySelectorAll("article")].map(
    (element) => ({ element, text: element.textContent.toLowerCase(), kernels: element.dataset.kernels }));
  const groups = [...document.querySelectorAll(".chapter"), ...document.querySelectorAll("section")];
  function choose() {
    const wanted = words.value.toLowerCase().split(/\s+/).filter(Boolean);
    let shown = 0;
    for (const { element, text, kernels } of articles) {
      const fits = wanted.every((word) => text.includes(word)) && (!kernel.value || kernels.includes(` ${kernel.value} `));
      element.hidden = !fits;
      shown += fits;
    }
    for (const group of groups) group.hidden = !group.querySelector("article:not([hidden])");
    count.textContent = shown === articles.length ? all : `${shown} of ${articles.length} sentences`;
  }
  words.addEventListener("input", choose);
  kernel.addEventListener("change", choose);
  choose();
})();
