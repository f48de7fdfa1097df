// What Furo has inline: the theme that the reader chose, or that of the system.
document.body.dataset.theme = localStorage.getItem("theme") || "auto";
